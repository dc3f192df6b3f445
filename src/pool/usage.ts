import type { AttemptKey } from '../job/ids.ts';
import { processes, processesOf } from './processes.ts';
import type { Run } from './run.ts';

/** What a running attempt's processes take now. */
export interface RunUsage {
  readonly key: AttemptKey;
  /** Of the processes that live now and of their children that ended, user and system together. */
  readonly cpuSeconds: number;
  readonly rssKb: number;
  readonly processes: number;
}

/** Clock ticks a second in /proc (USER_HZ, 100 with every kernel that this runs on). */
const TICKS = 100;

/** Of these runs, by their own sessions and by the key that all they started carries. */
export function usageOf(runs: readonly Run[]): RunUsage[] {
  const keyOfShell = new Map(runs.flatMap((run) => (run.shell ? [[run.shell.pid, run.key] as const] : [])));
  const wanted = new Map(runs.map(({ key }) => [key, { cpuSeconds: 0, rssKb: 0, processes: 0 }]));
  const byKey = new Map(processesOf(new Set(wanted.keys())).map(({ pid, key }) => [pid, key]));
  for (const { pid, session, rssKb, cpuTicks } of processes()) {
    // The shell itself runs one attempt after another: what it waited for was of others, too.
    if (keyOfShell.has(pid)) continue;
    const sum = wanted.get((byKey.get(pid) ?? keyOfShell.get(session) ?? '') as AttemptKey);
    if (!sum) continue;
    sum.cpuSeconds += cpuTicks / TICKS;
    sum.rssKb += rssKb;
    sum.processes += 1;
  }
  return [...wanted].map(([key, sum]) => ({ key, ...sum }));
}
