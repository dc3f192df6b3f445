import { readdir, readlink, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { GryphusError, asError } from '../errors.ts';
import type { InputFile } from '../site/contract.ts';
import type { BlobIndex } from './blobs.ts';

/**
 * The files of a transfer list as they should appear in the job's directory: a file under its base name, a directory
 * with all its contents, or only the contents if the entry ends in a slash (HTCondor's manual, `transfer_input_files`).
 * Paths are absolute. A later entry replaces an earlier one with the same name.
 */
export async function resolveInputs(paths: readonly string[], blobs: BlobIndex): Promise<InputFile[]> {
  const found = new Map<string, InputFile>();
  for (const path of paths) {
    const contentsOnly = path.endsWith('/');
    const top = contentsOnly ? path.replace(/\/+$/, '') : path;
    for (const input of await entry(top, contentsOnly ? '' : basename(top), blobs, [])) found.set(input.name, input);
  }
  return [...found.values()];
}

/** A file, or a directory with all its contents, under a given name. `path` is absolute. */
export async function inputAs(path: string, name: string, blobs: BlobIndex): Promise<readonly InputFile[]> {
  return entry(path, name, blobs, []);
}

/** `above`: its parent directories as `device:inode`, to detect loops. */
async function entry(
  path: string,
  name: string,
  blobs: BlobIndex,
  above: readonly string[],
): Promise<readonly InputFile[]> {
  const seen = await stat(path).catch((thrown: unknown) => unreadable(path, thrown));
  if (seen.isFile()) {
    const blob = await blobs.blobOf(path);
    return [{ kind: 'file', name, file: { kind: 'blob', blob }, executable: (seen.mode & 0o111) !== 0 }];
  }
  if (!seen.isDirectory()) {
    throw new GryphusError('input-missing', `The input ${path} is neither a file nor a directory.`);
  }
  const here = `${seen.dev}:${seen.ino}`;
  if (above.includes(here)) {
    throw new GryphusError('input-missing', `The input ${path} is a link to a directory that contains it.`, {
      suggestions: ['Remove the link, then `gryphus release` the job.'],
    });
  }
  const files: InputFile[] = name === '' ? [] : [{ kind: 'directory', name }];
  for (const inside of (await readdir(path).catch((thrown: unknown) => unreadable(path, thrown))).sort()) {
    const inner = name === '' ? inside : `${name}/${inside}`;
    files.push(...(await entry(join(path, inside), inner, blobs, [...above, here])));
  }
  return files;
}

async function unreadable(path: string, thrown: unknown): Promise<never> {
  const link = await readlink(path).catch(() => undefined);
  // Node decodes bytes that are not UTF-8 as this character.
  const odd = path.includes('\uFFFD');
  const why = odd
    ? 'has a name that is not UTF-8'
    : link === undefined
      ? 'does not exist or cannot be read'
      : `is a link to ${link}, which does not exist or cannot be read`;
  throw new GryphusError('input-missing', `The input ${path} ${why}.`, {
    cause: asError(thrown),
    suggestions: [`${odd ? 'Rename it' : 'Put it there'}, then \`gryphus release\` the job.`],
  });
}
