import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Gives a directory a name for ever, in a file of its own: a later one in the same place has another. */
export function markDirectory(dir: string): void {
  const file = markFile(dir);
  if (existsSync(file)) return;
  const temporary = `${file}.${randomBytes(6).toString('hex')}.new`;
  try {
    writeFileSync(temporary, `${randomBytes(12).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' });
    try {
      linkSync(temporary, file);
    } catch {
      // Another process was quicker, or this file system has no links.
      if (!existsSync(file)) renameSync(temporary, file);
    }
  } catch {
    // No room on the disk: it is known by being there.
  } finally {
    rmSync(temporary, { force: true });
  }
}

export function isMarked(dir: string): boolean {
  return existsSync(markFile(dir));
}

/**
 * Says at each call whether the directory of now is not there any more, or another is in its place; a file system that
 * refuses or fails says nothing of it.
 */
export function goneCheck(dir: string): () => boolean {
  const mine = markOf(dir);
  return () => {
    const now = markOf(dir);
    return typeof mine === 'string' && now !== 'unreadable' ? now !== mine : !isThere(dir);
  };
}

/** `undefined`: there is none; 'unreadable': that cannot be said now. */
function markOf(dir: string): string | undefined {
  try {
    return readFileSync(markFile(dir), 'utf8');
  } catch (thrown) {
    return isMissing(thrown) ? undefined : 'unreadable';
  }
}

function isThere(dir: string): boolean {
  try {
    statSync(dir);
    return true;
  } catch (thrown) {
    return !isMissing(thrown);
  }
}

function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR');
}

function markFile(dir: string): string {
  return join(dir, 'state-id');
}
