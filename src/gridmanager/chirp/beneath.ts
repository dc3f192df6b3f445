import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises';

/** An error as the system reports it, by its errno's name. */
export class SystemError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** A directory at home, and what may be reached below it. */
export interface Bounds {
  /** Absolute. */
  readonly root: string;
  /** Whether a name in a directory is closed to jobs. */
  readonly isClosed: (directory: Stats, name: string) => boolean;
}

/** The last step of a path: a name in a directory that is held open. */
export interface Place {
  /** A path that leads there, whatever happens to the directories above. */
  readonly path: string;
  /** '.' if it is the directory itself. */
  readonly name: string;
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** As in Linux (path_resolution(7)). */
const MOST_LINKS = 40;

/**
 * Walks a relative path from a directory, and does `work` at its end. As openat2(2) with RESOLVE_BENEATH, it leads to
 * nothing outside, whatever is renamed or replaced meanwhile: each directory is opened in the one before, never through
 * a link; links are read and walked here, and `..` goes back to the directory that was walked. `follow`: also through a
 * link at the end. Rejects with a SystemError, or the system's own.
 */
export async function beneath<T>(
  bounds: Bounds,
  path: string,
  follow: boolean,
  work: (place: Place) => Promise<T>,
): Promise<T> {
  const stack = [await open(bounds.root, constants.O_RDONLY | constants.O_DIRECTORY)];
  try {
    return await work(await walk(bounds, stack, path, follow));
  } finally {
    await Promise.all(stack.map((one) => one.close()));
  }
}

async function walk({ root, isClosed }: Bounds, stack: FileHandle[], path: string, follow: boolean): Promise<Place> {
  const todo = steps(within(root, path));
  for (let links = 0; ; ) {
    const here = stack.at(-1);
    if (!here) throw new SystemError('EACCES');
    const name = todo.shift();
    if (name === undefined) return { path: at(here, '.'), name: '.' };
    if (name === '..') {
      if (stack.length === 1) throw new SystemError('EACCES');
      await stack.pop()?.close();
      continue;
    }
    if (isClosed(await here.stat(), name)) throw new SystemError('EACCES');
    const there = at(here, name);
    const last = todo.length === 0;
    if (last && !follow) return { path: there, name };
    const found = await lstat(there).catch((thrown: unknown) => {
      if (last && codeOf(thrown) === 'ENOENT') return undefined;
      throw thrown;
    });
    if (found?.isSymbolicLink()) {
      if (++links > MOST_LINKS) throw new SystemError('ELOOP');
      const target = await readlink(there);
      // Its directory is where it starts, or, if it is absolute, the root.
      if (target.startsWith('/')) for (const one of stack.splice(1)) await one.close();
      todo.unshift(...steps(within(root, target)));
    } else if (last) return { path: there, name };
    else stack.push(await open(there, DIRECTORY));
  }
}

/** An absolute path is good only if it names something below the directory. */
function within(root: string, path: string): string {
  if (path.includes('\0') || path === '') throw new SystemError(path === '' ? 'ENOENT' : 'EINVAL');
  if (!path.startsWith('/')) return path;
  const base = root.replace(/\/+$/, '');
  if (path !== base && !path.startsWith(`${base}/`)) throw new SystemError('EACCES');
  return path.slice(base.length + 1);
}

function steps(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}

function at(directory: FileHandle, name: string): string {
  return `/proc/self/fd/${directory.fd}/${name}`;
}

export function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
}
