import { statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { type Bounds, SystemError } from '../chirp/beneath.ts';
import type { Secrets } from '../chirp/secrets.ts';

/** A directory that jobs may reach. */
export interface Root {
  /** Absolute and normal. */
  readonly path: string;
  readonly writable: boolean;
}

/** An entry of `pool.remote_io`: a directory, with `:rw` behind it if jobs may write there. `undefined`: it is not one. */
export function readRoot(entry: string, home: string): Root | undefined {
  const writable = entry.endsWith(':rw');
  const path = writable ? entry.slice(0, -':rw'.length) : entry;
  if (path.includes('\0')) return undefined;
  if (path === '~' || path.startsWith('~/')) return { path: resolve(home, `.${path.slice(1)}`), writable };
  return path.startsWith('/') ? { path: resolve(path), writable } : undefined;
}

/** The submit directory, and the others but those of keys and our own. */
export function rootsOf(iwd: string, others: readonly Root[], secrets: Pick<Secrets, 'isClosed'>): readonly Root[] {
  return [{ path: resolve(iwd), writable: true }, ...others.filter(({ path }) => !isClosed(path, secrets))];
}

/** The root below which a path lies; the nearest, if one lies in another. Throws EACCES if there is none. */
export function rootFor(path: string, roots: readonly Root[]): Root {
  let found: Root | undefined;
  for (const root of roots) {
    const base = root.path === '/' ? '' : root.path;
    if ((path === root.path || path.startsWith(`${base}/`)) && root.path.length > (found?.path.length ?? 0))
      found = root;
  }
  if (!found) throw new SystemError('EACCES');
  return found;
}

export function boundsOf(
  { path }: Root,
  { isClosed: closed, isAnchor }: Pick<Secrets, 'isClosed' | 'isAnchor'>,
): Bounds {
  return { root: path, isClosed: closed, isAnchor };
}

/** Whether a directory or one above it is closed to jobs. */
function isClosed(path: string, secrets: Pick<Secrets, 'isClosed'>): boolean {
  const here = statSync(path, { throwIfNoEntry: false });
  // Whatever lies in one of our own is closed.
  if (here && secrets.isClosed(here, 'any')) return true;
  for (let at = path; at !== dirname(at); at = dirname(at)) {
    const above = statSync(dirname(at), { throwIfNoEntry: false });
    if (!above || secrets.isClosed(above, basename(at))) return true;
  }
  return false;
}
