import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileNameOf, isUrl } from '../staging/url/file-url.ts';
import type { JobFiles } from './files.ts';

/**
 * Names at the top of a job's directory that it was given: none of them is a new file. What it had saved itself is its own
 * work, whatever its name. `saved`: the directory of that.
 */
export async function givenNames({ inputs }: Pick<JobFiles, 'inputs'>, saved: string | undefined): Promise<string[]> {
  const names = new Set<string>();
  for (const input of inputs) {
    if (isUrl(input)) for (const name of nameOfUrl(input)) names.add(name);
    else if (input.endsWith('/')) for (const name of await listed(input)) names.add(name);
    else names.add(basename(input));
  }
  for (const name of saved === undefined ? [] : await listed(saved)) names.delete(name);
  return [...names];
}

/** What has no name was never given. */
function nameOfUrl(text: string): string[] {
  try {
    return [fileNameOf(new URL(text))];
  } catch {
    return [];
  }
}

/** A directory that is gone since then names nothing. */
async function listed(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch {
    return [];
  }
}
