import type { AttemptKey } from '../../job/ids.ts';
import { processes, processesOf } from '../host/processes.ts';
import type { Run } from './run.ts';
import type { RunUsage } from '../wire/wire.ts';

/** Clock ticks per second in /proc (USER_HZ, 100 with every kernel that this runs on). */
const TICKS = 100;

/** What these runs use, attributed by session and by the key that all their processes carry in the environment. */
export function usageOf(runs: readonly Run[]): RunUsage[] {
  const keyOfShell = new Map(runs.flatMap((run) => (run.shell ? [[run.shell.pid, run.key] as const] : [])));
  const wanted = new Map(runs.map(({ key }) => [key, { cpuSeconds: 0, rssKb: 0, processes: 0 }]));
  const byKey = new Map(processesOf(new Set(wanted.keys())).map(({ pid, key }) => [pid, key]));
  for (const { pid, session, rssKb, cpuTicks } of processes()) {
    // The shell runs one attempt after another, so its child times include other attempts.
    if (keyOfShell.has(pid)) continue;
    const sum = wanted.get((byKey.get(pid) ?? keyOfShell.get(session) ?? '') as AttemptKey);
    if (!sum) continue;
    sum.cpuSeconds += cpuTicks / TICKS;
    sum.rssKb += rssKb;
    sum.processes += 1;
  }
  return [...wanted].map(([key, sum]) => ({ key, ...sum }));
}
