import { readFileSync, statfsSync } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { serverPlace } from './redis-place.ts';

/** With less free space than this, Redis would not survive its first rewrite. */
const LEAST_FREE_BYTES = 2_000_000;

/** Whether the server's disk is full, by the file system and the end of the server's log. */
export function diskIsFull(stateDir: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(stateDir);
    if (bavail * bsize < LEAST_FREE_BYTES) return true;
  } catch {
    // No state directory: not a lack of space.
  }
  // With `appendfsync always`, Redis exits at the first write that fails.
  return /Short write while writing to the AOF|No space left|quota exceeded/i.test(
    latestLog(serverPlace({ stateDir }).log),
  );
}

/** Throws 'disk-full' if a server would soon fail for lack of space. */
export function refuseFullDisk(stateDir: string): void {
  let free: number;
  try {
    const { bavail, bsize } = statfsSync(stateDir);
    free = bavail * bsize;
  } catch {
    return;
  }
  if (free < LEAST_FREE_BYTES) {
    throw new GryphusError('disk-full', `There is no space left for the queue on the disk of ${stateDir}.`, {
      suggestions: ['Free some space there; nothing that was acknowledged is lost.'],
    });
  }
}

/** The log of the latest server. */
export function latestLog(log: string): string {
  try {
    const all = readFileSync(log, 'utf8').slice(-4000);
    return all.slice(Math.max(0, all.lastIndexOf('is starting')));
  } catch {
    return '';
  }
}
