import type { Run } from './run.ts';
import type { StartdOptions } from './startd-options.ts';

/**
 * What has to be over before the end of a run whose program has ended is reported; `undefined` if nothing is left: its
 * container is removed, its image is whole, and home knows what it said by its proxy.
 */
export function beforeEnd(
  run: Run,
  { containers, chirp, accounts }: Pick<StartdOptions, 'containers' | 'chirp' | 'accounts'>,
): Promise<void> | undefined {
  const back = accounts?.takeBack(run);
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
