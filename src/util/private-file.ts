import { randomBytes } from 'node:crypto';
import {
  accessSync,
  constants,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { asError, GryphusError } from '../errors.ts';

/** Writes a file atomically: under a temporary name next to it, on disk, then renamed. Mode 0600 by default. */
export function writeWhole(path: string, content: string | Uint8Array, mode = 0o600): void {
  replace(path, content, mode, fsyncSync);
  flushDir(dirname(path));
}

/** What was made, renamed or removed in the directory stays so when the power fails. */
export function flushDir(path: string): void {
  try {
    const dir = openSync(path, 'r');
    try {
      fsyncSync(dir);
    } finally {
      closeSync(dir);
    }
  } catch (thrown) {
    if (!isUnflushable(thrown)) throw thrown;
  }
}

/** Of a directory in which we may make files and not list them, or whose file system has no such call. */
export function isUnflushable(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && UNFLUSHABLE.has(thrown.code);
}

const UNFLUSHABLE = new Set<unknown>(['EACCES', 'EINVAL', 'ENOSYS', 'ENOTSUP']);

/** The same for what may be lost when the machine dies: it is not waited for until it is on disk. Mode 0600. */
export function writeUnflushed(path: string, content: string): void {
  replace(path, content, 0o600, () => undefined);
}

function replace(path: string, content: string | Uint8Array, mode: number, flush: (fd: number) => void): void {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`;
  try {
    const fd = openSync(temporary, 'wx', mode);
    try {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content;
      let done = 0;
      while (done < bytes.length) done += writeSync(fd, bytes, done);
      flush(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (cause) {
    rmSync(temporary, { force: true });
    if (!/ENOSPC|EDQUOT/.test(asError(cause).message)) throw cause;
    throw new GryphusError('disk-full', `${path} cannot be written: no space left on its disk.`, {
      cause,
      suggestions: ['Free some space there.'],
    });
  }
}

/** The random key in this file, which is made if there is none. Processes that do this at once get the same key. */
export function keyAt(path: string): string {
  if (!existsSync(path)) {
    const mine = `${path}.${randomBytes(6).toString('hex')}`;
    writeWhole(mine, randomBytes(32).toString('hex'));
    try {
      linkSync(mine, path);
    } catch (thrown) {
      if (!existsSync(path)) throw thrown;
    } finally {
      rmSync(mine, { force: true });
    }
  }
  return readFileSync(path, 'utf8');
}

/** Refuses a directory that its user may not look into, with 'not-permitted', before anything is asked there. */
export function refuseClosed(path: string): void {
  try {
    lstatSync(join(path, '.'), { throwIfNoEntry: false });
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.X_OK);
  } catch (thrown) {
    const cause = asError(thrown);
    throw new GryphusError('not-permitted', `The directory ${path} cannot be read: ${cause.message}.`, {
      cause,
      suggestions: ['Set GRYPHUS_HOME to a directory of your own.'],
    });
  }
}

/** Makes a directory and its parents, closed to others; 'not-permitted' if that is impossible. */
export function makePrivateDirs(path: string): void {
  try {
    makeDirs(path);
  } catch (thrown) {
    const cause = asError(thrown);
    throw new GryphusError('not-permitted', `The directory ${path} cannot be made: ${cause.message}.`, {
      cause,
      suggestions: ['Set GRYPHUS_HOME to a writable place.'],
    });
  }
}

/**
 * Like mkdir -p, for a path of the user's choice: Node's own (20.20) never returns if a file system, such as /proc, says ENOENT for
 * an existing directory.
 */
export function makeDirs(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  makeDirs(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
    flushDir(dirname(path));
  } catch (thrown) {
    // Another process was faster.
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) throw thrown;
  }
}

/** Makes a directory (and its parents) that only we can enter; an existing one must be ours and closed to others. */
export function ensurePrivateDir(path: string): void {
  makePrivateDirs(path);
  const found = lstatSync(path);
  const uid = process.getuid?.();
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid)) {
    throw new GryphusError('not-permitted', `${path} is not a directory of yours.`, {
      suggestions: ['Remove it, or set GRYPHUS_HOME to another place.'],
    });
  }
  if ((found.mode & 0o077) !== 0) {
    throw new GryphusError('not-permitted', `Others can enter ${path} (mode ${(found.mode & 0o777).toString(8)}).`, {
      suggestions: [`Run: chmod 700 '${path}'`],
    });
  }
}
