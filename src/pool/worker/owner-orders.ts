import { readString } from '../../job/values.ts';
import { wantsCheckpoint } from './checkpoint.ts';
import { jobAdOf } from './job-ad-of.ts';
import type { Orders } from './owner-control.ts';
import type { Run } from './run.ts';
import type { StartdOptions } from './startd-options.ts';
import { evicted, stop, stopNow } from './stopping.ts';
import { suspend } from './suspending.ts';

/** How the orders of the policy are carried out. */
export function ownerOrders(means: () => Pick<StartdOptions, 'owner' | 'say'>): Orders {
  return {
    hold: (run, still) => suspend(run, still, 'owner', means()),
    vacate: (run, { message, by }, mostSeconds) => stop(run, evicted(message, by), mostSeconds),
    kill: (run, { message, by }) => stopNow(run, evicted(message, by)),
    checkpoint,
  };
}

/** HTCondor's signal for a job that asks to be told when to checkpoint (WantCheckpointSignal, CheckpointSig). */
const CHECKPOINT_SIGNAL = 'SIGUSR2';

function checkpoint(run: Run): boolean {
  if (run.save && !run.saving && wantsCheckpoint(run)) {
    // What cannot be checkpointed now goes on: the next time will come.
    const saving = run.save(false).then(() => {
      if (run.saving === saving) run.saving = undefined;
    });
    run.saving = saving;
    return true;
  }
  const ad = jobAdOf(run);
  const source = { get: (name: string) => ad[name] ?? undefined };
  if (source.get('WantCheckpointSignal')?.trim().toLowerCase() !== 'true') return false;
  const name = readString(source, 'CheckpointSig') ?? CHECKPOINT_SIGNAL;
  if (!/^SIG[A-Z0-9]+$/.test(name)) return false;
  run.signal(name as NodeJS.Signals);
  return true;
}
