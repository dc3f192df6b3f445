import type { AttemptKey } from '../../job/ids.ts';
import { processes, processesOf } from '../host/processes.ts';
import type { Run } from './run.ts';
import type { RunUsage } from '../wire/wire.ts';

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
