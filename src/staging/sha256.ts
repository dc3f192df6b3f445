import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { blocksOf } from '../util/blocks.ts';

/** In hexadecimal. */
export async function sha256Of(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    return await sha256OfOpen(file);
  } finally {
    await file.close();
  }
}

/** From its start to its end. */
export async function sha256OfOpen(file: Pick<FileHandle, 'read'>): Promise<string> {
  const hash = createHash('sha256');
  for await (const block of blocksOf(file)) hash.update(block);
  return hash.digest('hex');
}
