import { statfsSync } from 'node:fs';

/** What strangers leave free of a disk: a twentieth, at most this much. */
const MOST_BYTES = 2 ** 30;
const PART = 1 / 20;

export const NEARLY_FULL = 'the disk of its machine is nearly full, and is kept for its owner';

/** Whether so little is left on a directory's disk that a stranger may not use it. */
export function isNearlyFull(dir: string): boolean {
  try {
    const { bavail, blocks, bsize } = statfsSync(dir);
    return bavail * bsize < Math.min(MOST_BYTES, blocks * bsize * PART);
  } catch {
    return false;
  }
}
