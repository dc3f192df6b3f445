import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { savedBy } from '../staging/checkpoints.ts';
import { fileNameOf, isUrl } from '../staging/url/file-url.ts';
import type { JobFiles } from './files.ts';

/**
 * Names at the top level of a job's directory that came with its inputs and so are not new files. A file that the job
 * saved itself counts as its own, whatever its name. `saved`: the directory of those.
 */
export async function givenNames({ inputs }: Pick<JobFiles, 'inputs'>, saved: string | undefined): Promise<string[]> {
  const names = new Set<string>();
  for (const input of inputs) {
    if (isUrl(input)) for (const name of nameOfUrl(input)) names.add(name);
    else if (input.endsWith('/')) for (const name of await listed(input)) names.add(name);
    else names.add(basename(input));
  }
  for (const { path } of saved === undefined ? [] : await savedBy(saved))
    for (const name of await listed(path)) names.delete(name);
  return [...names];
}

/** Without a valid name it was never transferred. */
function nameOfUrl(text: string): string[] {
  try {
    return [fileNameOf(new URL(text))];
  } catch {
    return [];
  }
}

/** A directory that no longer exists has no entries. */
async function listed(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch {
    return [];
  }
}
