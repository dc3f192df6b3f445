import { startTimer } from '../../util/long-timer.ts';
import type { FromWorker } from '../wire/wire.ts';
import type { Run } from './run.ts';
import { stop, timeout } from './stopping.ts';
import { isTask } from './task-runner-slot.ts';
import { warnBefore } from './warning.ts';

/**
 * A run is reported as started only after this time, in milliseconds, since short ones end sooner; a map's task only
 * when it is slow.
 */
const SETTLE_MS = 4;
const SLOW_MS = 100;

/** What is due when a run has been running for some time: its report, what follows if it is slow, and its time limit. */
export function setTimers(
  run: Run,
  { slowMs = SLOW_MS, say }: { readonly slowMs?: number | undefined; readonly say: (message: FromWorker) => void },
  slow: () => void,
): void {
  const settled = () => {
    if (run.phase === 'running') say({ t: 'started', key: run.key, at: run.startedAt ?? 0 });
  };
  run.timers.push(setTimeout(settled, isTask(run.dir) ? slowMs : SETTLE_MS), setTimeout(slow, slowMs));
  limitTime(run);
}

/** Ends a run at its time limit, counted from its start, also if an earlier worker started it. */
export function limitTime(run: Run): void {
  const { walltimeSeconds } = run.record.spec;
  if (walltimeSeconds === undefined) return;
  const ranMs = Math.max(0, Date.now() - (run.startedAt ?? Number.POSITIVE_INFINITY) * 1000);
  warnBefore(run, walltimeSeconds, ranMs);
  const end = () => stop(run, timeout(walltimeSeconds));
  startTimer(Math.max(0, walltimeSeconds * 1000 - ranMs), end, (timer) => void run.timers.push(timer));
}
