import { readFileSync, statfsSync } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { serverPlace } from './redis-place.ts';

/** Less than this, and Redis would not live through its first rewrite. */
const LEAST_FREE_BYTES = 2_000_000;

/** Whether the disk under the server is full, by what the file system and the server's last words say. */
export function diskIsFull(stateDir: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(stateDir);
    if (bavail * bsize < LEAST_FREE_BYTES) return true;
  } catch {
    // No state directory: not for lack of room.
  }
  // With `appendfsync always` Redis ends itself at the first write that fails.
  return /Short write while writing to the AOF|No space left|quota exceeded/i.test(
    lastWords(serverPlace({ stateDir }).log),
  );
}

/** A GryphusError 'disk-full' where a server would not live long. */
export function refuseFullDisk(stateDir: string): void {
  let free: number;
  try {
    const { bavail, bsize } = statfsSync(stateDir);
    free = bavail * bsize;
  } catch {
    return;
  }
  if (free < LEAST_FREE_BYTES) {
    throw new GryphusError('disk-full', `There is no room for the queue on the disk of ${stateDir}.`, {
      suggestions: ['Free some space there; nothing that was acknowledged is lost.'],
    });
  }
}

/** What the latest server logged. */
export function lastWords(log: string): string {
  try {
    const all = readFileSync(log, 'utf8').slice(-4000);
    return all.slice(Math.max(0, all.lastIndexOf('is starting')));
  } catch {
    return '';
  }
}
