import type { Ending } from '../../site/contract.ts';
import type { AttemptDir } from './attempt-dir.ts';
import { put } from './cgroup-files.ts';
import type { Cgroups } from './cgroups.ts';
import { parentOf, processesOf } from '../host/processes.ts';
import type { Run } from './run.ts';
import { lookAtMemory } from './run-news.ts';
import { isTask } from './task-runner-slot.ts';
import { evicted, killedForMemory, outOfMemory } from './stopping.ts';
import { isNearlyFull, NEARLY_FULL } from './stranger-disk.ts';

/** Creates a run's cgroup, after recording where it will be; returns the files through which a process enters it. */
export function enterGroup(run: Run, dir: AttemptDir, groups: Cgroups | undefined): readonly string[] {
  if (!groups) return [];
  dir.noteGroup(groups.placesOf(run.key));
  run.group = groups.make(run.key, run.record.size, isLimited(run, groups));
  return run.group?.doors ?? [];
}

/** Whether it may use no more memory than its slot has: a stranger may not in any case. */
export function isLimited({ record }: Run, { limitMemory }: { readonly limitMemory: boolean }): boolean {
  return limitMemory || record.user?.stranger !== undefined;
}

/** Scans for processes outside the cgroup: a program may start more during a scan. */
const TURNS = 10;

/** Gives a cgroup to a run that started without one: only runs that last long enough are worth one. */
export function joinGroup(run: Run, groups: Cgroups | undefined): void {
  if (!groups || run.group || run.phase !== 'running' || isTask(run.dir)) return;
  try {
    run.dir.noteGroup(groups.placesOf(run.key));
  } catch {
    // No space left on the disk: it is watched without a cgroup.
    return;
  }
  const group = groups.make(run.key, run.record.size, isLimited(run, groups));
  if (!group) return;
  run.group = group;
  run.joinedLate = true;
  for (let turn = 0; turn < TURNS; turn++) {
    const inside = new Set(group.pids());
    const outside = processesOf(new Set([run.key])).filter(
      // The waiter, a child of the shell, stays outside: it has to outlive the program that it reports.
      ({ pid }) => !inside.has(pid) && parentOf(pid) !== run.shell?.pid,
    );
    if (outside.length === 0) return;
    for (const { pid } of outside) for (const door of group.doors) put(door, String(pid));
  }
}

/** The run's ending if the kernel's OOM killer killed one of its processes. */
export function starved({ group, record }: Run): Ending | undefined {
  return group !== undefined && group.usage().oomKills > 0 ? killedForMemory(record.size.memoryMb) : undefined;
}

/**
 * Updates each run's peak memory; returns those that exceed their slot's memory, and strangers on a disk that is nearly full,
 * with the resulting endings.
 */
export function overLimits(runs: Iterable<Run>): { readonly run: Run; readonly ending: Ending }[] {
  const all = [...runs];
  const over = lookAtMemory(all).map(({ run, usedMb }) => ({
    run,
    ending: outOfMemory(usedMb, run.record.size.memoryMb),
  }));
  const killed = all.flatMap((run) => {
    const ending = run.phase === 'running' ? starved(run) : undefined;
    return ending === undefined ? [] : [{ run, ending }];
  });
  const ending = evicted(NEARLY_FULL, 'policy');
  const crowding = all.filter(
    ({ phase, dir, record }) => phase === 'running' && record.user?.stranger && isNearlyFull(dir.work),
  );
  return [...over, ...killed, ...crowding.map((run) => ({ run, ending }))];
}
