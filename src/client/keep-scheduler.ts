import { setTimeout as sleep } from 'node:timers/promises';
import { hasCrashed } from '../config/daemon-files.ts';
import type { Paths } from '../config/paths.ts';
import { SCHEDULER } from '../util/daemon.ts';

/** Between two looks, in milliseconds; after a failed start, twice as long each time, up to the limit. */
const LOOK_MS = 1000;
const LONGEST_MS = 30_000;

/**
 * Starts the Scheduler again when it crashed, until `signal`: what is waited for would otherwise never come. One that
 * ended in order (`gryphus down`) stays down.
 */
export async function keepScheduler(paths: Paths, start: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let pause = LOOK_MS; ; ) {
    await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    if (!hasCrashed(paths, SCHEDULER)) {
      pause = LOOK_MS;
      continue;
    }
    pause = await start().then(
      () => LOOK_MS,
      () => Math.min(LONGEST_MS, 2 * pause),
    );
  }
}
