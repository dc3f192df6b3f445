import { setTimeout as delay } from 'node:timers/promises';
import { type Run, wasTerminated } from './run.ts';
import type { StartdOptions } from './startd-options.ts';

/**
 * How long the signal by which a batch system ends an allocation, or a machine all processes at a shutdown or a log-out, may take to
 * reach the worker as well; milliseconds.
 */
export const TOLD_MS = 1000;

/**
 * What has to be over before the end of a run whose program has ended is reported; `undefined` if nothing is left: its
 * container is removed, its image is whole, and home knows what it said by its proxy. It is also certain whether the program
 * was told to end by itself, or the worker with it.
 */
export function beforeEnd(
  run: Run,
  runs: Iterable<Run>,
  { containers, chirp, accounts }: Pick<StartdOptions, 'containers' | 'chirp' | 'accounts'>,
): Promise<void> | undefined {
  if (!run.waitedForTold && !run.decided && wasTerminated(run.dir.exit())) {
    run.waitedForTold = true;
    return delay(TOLD_MS);
  }
  const back = accounts?.takeBack(run, runs);
  if (back) return back;
  const released = run.record.spec.container && containers.release(run.dir);
  if (released) return released;
  const { saving } = run;
  run.saving = undefined;
  return saving ?? chirp?.end(run);
}

/** Takes away what a run that will not start was given. */
export function takeBack(run: Run, { chirp, accounts }: Pick<StartdOptions, 'chirp' | 'accounts'>): void {
  accounts?.takeBackNow(run);
  void chirp?.end(run);
  void run.group?.end();
  run.clearTimers();
}
