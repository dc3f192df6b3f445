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
  /** Whether this is a directory that jobs may neither move, replace nor change, because our own lie in it. */
  readonly isAnchor: (directory: Stats) => boolean;
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
 * a link; links are read and walked here, and `..` leads only to the directory that was walked. `follow`: also through a
 * link at the end. One directory is open at a time, however deep the path. Rejects with a SystemError, or the system's own.
 */
export async function beneath<T>(
  bounds: Bounds,
  path: string,
  follow: boolean,
  work: (place: Place) => Promise<T>,
): Promise<T> {
  const walk = new Walk(bounds, await open(bounds.root, constants.O_RDONLY | constants.O_DIRECTORY));
  try {
    return await work(await walk.to(path, follow));
  } finally {
    await walk.close();
  }
}

class Walk {
  readonly #bounds: Bounds;
  #here: FileHandle;
  /** What the directories above are, from the root down. */
  readonly #above: Stats[] = [];

  constructor(bounds: Bounds, root: FileHandle) {
    this.#bounds = bounds;
    this.#here = root;
  }

  close(): Promise<void> {
    return this.#here.close();
  }

  async to(path: string, follow: boolean): Promise<Place> {
    const { root, isClosed } = this.#bounds;
    const todo = steps(within(root, path));
    for (let links = 0; ; ) {
      const name = todo.shift();
      if (name === undefined) return { path: this.#at('.'), name: '.' };
      if (name === '..') {
        await this.#up();
        continue;
      }
      const here = await this.#here.stat();
      if (isClosed(here, name)) throw new SystemError('EACCES');
      const there = this.#at(name);
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
        if (target.startsWith('/')) while (this.#above.length > 0) await this.#up();
        todo.unshift(...steps(within(root, target)));
      } else if (last) return { path: there, name };
      else {
        await this.#go(await open(there, DIRECTORY));
        this.#above.push(here);
      }
    }
  }

  /** Back to the directory that was walked. If this one was moved meanwhile, it lies elsewhere, and nothing is reached. */
  async #up(): Promise<void> {
    const wanted = this.#above.pop();
    if (!wanted) throw new SystemError('EACCES');
    await this.#go(await open(this.#at('..'), DIRECTORY));
    const { dev, ino } = await this.#here.stat();
    if (dev !== wanted.dev || ino !== wanted.ino) throw new SystemError('EACCES');
  }

  async #go(next: FileHandle): Promise<void> {
    const before = this.#here;
    this.#here = next;
    await before.close();
  }

  #at(name: string): string {
    return `/proc/self/fd/${this.#here.fd}/${name}`;
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

export function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
}
