import { readString } from '../../job/values.ts';
import { jobAdOf } from './job-ad-of.ts';
import type { Run } from './run.ts';
import type { StartdOptions } from './startd-options.ts';
import { evicted, stopNow } from './stopping.ts';
import { wantsCheckpoint } from './wants-checkpoint.ts';

/** HTCondor's signal for a job that asks to be told when to checkpoint (WantCheckpointSignal, CheckpointSig). */
const CHECKPOINT_SIGNAL = 'SIGUSR2';

/**
 * Has a run's image written, or its program told to save its work; the run goes on. Its home is told of an image; why
 * there is none, only if its user asked. `answer` is given either, unless the run wants no checkpoints, or one is being made.
 */
export function saveNow(
  run: Run,
  by: 'user' | 'policy',
  { chirp }: Pick<StartdOptions, 'chirp'>,
  answer: (trouble: string | undefined) => void = () => undefined,
): void {
  if (run.save && !run.saving && wantsCheckpoint(run)) {
    // What cannot be checkpointed now goes on: the next time will come.
    const saving = run.save(false).then((trouble) => {
      if (run.saving === saving) run.saving = undefined;
      answer(trouble);
      // Whether it lives or not, it is not what it was.
      if (run.brokenSave) return stopNow(run, evicted(`its checkpoint was broken off: ${trouble}`, 'policy'));
      if (trouble === undefined) return chirp?.tell(run, 'checkpointed', [], milliseconds(run));
      return by === 'user' ? chirp?.tell(run, 'not_checkpointed', [trouble], []) : undefined;
    });
    run.saving = saving;
    return;
  }
  const ad = jobAdOf(run);
  const source = { get: (name: string) => ad[name] ?? undefined };
  if (source.get('WantCheckpointSignal')?.trim().toLowerCase() !== 'true') return;
  const name = readString(source, 'CheckpointSig') ?? CHECKPOINT_SIGNAL;
  if (!/^SIG[A-Z0-9]+$/.test(name)) return;
  run.signal(name as NodeJS.Signals);
  answer(undefined);
}

/** Its processor time so far, user and system. */
function milliseconds({ group, joinedLate, cpuSeconds }: Run): number[] {
  const used = joinedLate ? undefined : group?.usage();
  return [used?.userSeconds ?? cpuSeconds, used?.systemSeconds ?? 0].map((seconds) => Math.round(seconds * 1000));
}
