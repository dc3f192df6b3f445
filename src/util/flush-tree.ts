import type { Dirent } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Resolves when a directory, all files in it and their names are on disk. Does not follow links. */
export async function flushTree(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { withFileTypes: true })) await flushEntry(join(dir, entry.name), entry);
  await flush(dir);
}

async function flushEntry(path: string, entry: Dirent): Promise<void> {
  if (entry.isDirectory()) await flushTree(path);
  else if (entry.isFile()) await flush(path);
}

async function flush(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
