import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AttrTexts } from '../../job/attrs.ts';
import { readString } from '../../job/values.ts';
import { AD_FILES } from './ad-files.ts';
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
  const ad = jobAdOf(run);
  const source = { get: (name: string) => ad[name] ?? undefined };
  if (source.get('WantCheckpointSignal')?.trim().toLowerCase() !== 'true') return false;
  const name = readString(source, 'CheckpointSig') ?? CHECKPOINT_SIGNAL;
  if (!/^SIG[A-Z0-9]+$/.test(name)) return false;
  run.signal(name as NodeJS.Signals);
  return true;
}

/** The job's own ad: of an earlier worker's run, the copy in its sandbox. */
export function jobAdOf(run: Run): AttrTexts {
  const { received } = run;
  try {
    const text = received
      ? received.kind.with(received.start.ad ?? {})
      : readFileSync(join(run.dir.work, AD_FILES.job), 'utf8');
    return Object.fromEntries(
      text.split('\n').flatMap((line) => {
        const [, name, value] = /^(\w+) = (.*)$/.exec(line) ?? [];
        return name === undefined || value === undefined ? [] : [[name, value]];
      }),
    );
  } catch {
    return {};
  }
}
