import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { flushDir } from './private-file.ts';

/**
 * Gives a directory a permanent identity in a file, so that a later one at the same path is recognized as different.
 */
export function markDirectory(dir: string): void {
  const file = markFile(dir);
  if (existsSync(file)) return;
  const temporary = `${file}.${randomBytes(6).toString('hex')}.new`;
  try {
    writeFileSync(temporary, `${randomBytes(12).toString('base64url')}\n`, {
      mode: 0o600,
      flag: 'wx',
      flush: true,
    });
    try {
      linkSync(temporary, file);
    } catch {
      // Another process was faster, or this file system has no links.
      if (!existsSync(file)) renameSync(temporary, file);
    }
    flushDir(dir);
  } catch {
    // The disk is full: the directory's existence has to do.
  } finally {
    rmSync(temporary, { force: true });
  }
}

export function isMarked(dir: string): boolean {
  return existsSync(markFile(dir));
}

/** Whether one directory is a copy of the other, or the same one by another name. */
export function sameMark(one: string, other: string): boolean {
  const mark = markOf(one);
  return mark !== undefined && mark !== 'unreadable' && mark === markOf(other);
}

/**
 * Each call says whether the directory that exists now has since been removed or replaced; a file system that refuses
 * access or fails proves neither.
 */
export function goneCheck(dir: string): () => boolean {
  const mine = markOf(dir);
  return () => {
    const now = markOf(dir);
    return typeof mine === 'string' && now !== 'unreadable' ? now !== mine : !isThere(dir);
  };
}

/** `undefined`: there is no mark; 'unreadable': unknown for now. */
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
