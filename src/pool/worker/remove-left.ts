import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';

/** Only directories: a file may have another name elsewhere, for which its mode counts too. */
const OPEN_AND_REMOVE =
  'PATH=/usr/bin:/bin; find "$1" -type d ! -perm -700 -execdir chmod u+rwx {} \\;; exec rm -rf -- "$1"';

/** Stays in the directories that it has opened. */
const REMOVE = 'PATH=/usr/bin:/bin; exec rm -rf -- "$1"';

/**
 * Removes a directory in which programs have worked. They may have left directories there that not even their owner may
 * read or change, or nested so deeply that their paths are too long. What belongs to somebody else stays. `others`: it
 * belongs to an account that can do less than this process, and may still run something, which could put a link in the place of
 * a directory at any moment; `rmSync` would then go on behind the link.
 */
export function removeLeft(dir: string, others = false): void {
  try {
    if (!others) return rmSync(dir, { recursive: true, force: true });
  } catch {
    // Below, in another way.
  }
  const isRoot = process.getuid?.() === 0;
  spawnSync('/bin/sh', ['-c', others && isRoot ? REMOVE : OPEN_AND_REMOVE, 'sh', dir], { stdio: 'ignore' });
}
