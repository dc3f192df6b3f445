import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Removes a directory in which processes that are about to end may still write. `rmSync` reads each directory once and
 * retries only its `rmdir`, so a file made in between fails it, however many retries it has.
 */
export async function removeTree(dir: string): Promise<void> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    try {
      rmSync(dir, { recursive: true, force: true });
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(50);
    }
  }
}
