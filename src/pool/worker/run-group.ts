import type { Ending } from '../../site/contract.ts';
import type { AttemptDir } from './attempt-dir.ts';
import { put } from './cgroup-files.ts';
import type { Cgroups } from './cgroups.ts';
import { processesOf, signal } from '../host/processes.ts';
import type { Run } from './run.ts';
import { lookAtMemory } from './run-news.ts';
import { isTask } from './task-runner-slot.ts';
import { killedForMemory, outOfMemory } from './stopping.ts';

/** Makes a run's group, which is on disk before: the files by which it comes into it. */
export function enterGroup(run: Run, dir: AttemptDir, groups: Cgroups | undefined): readonly string[] {
  if (!groups) return [];
  dir.noteGroup(groups.placesOf(run.key));
  run.group = groups.make(run.key, run.record.size);
  return run.group?.doors ?? [];
}

/** Looks for processes that are not yet in the group: a program may start others while it is looked. */
const TURNS = 10;

/** Gives a run that has begun without a group one: only what proves to take its time is worth one. */
export function joinGroup(run: Run, groups: Cgroups | undefined): void {
  if (!groups || run.group || run.phase !== 'running' || isTask(run.dir)) return;
  try {
    run.dir.noteGroup(groups.placesOf(run.key));
  } catch {
    // No room: it is watched as where there are no groups.
    return;
  }
  const group = groups.make(run.key, run.record.size);
  if (!group) return;
  run.group = group;
  run.joinedLate = true;
  for (let turn = 0; turn < TURNS; turn++) {
    const inside = new Set(group.pids());
    const outside = processesOf(new Set([run.key])).filter(({ pid }) => !inside.has(pid));
    if (outside.length === 0) return;
    for (const { pid } of outside) for (const door of group.doors) put(door, String(pid));
  }
}

/** Stops all of a run, or lets it go on. */
export function halt({ key, group }: Run, still: boolean): void {
  if (group?.freeze(still)) return;
  for (const { pid } of processesOf(new Set([key]))) signal(pid, still ? 'SIGSTOP' : 'SIGCONT');
}

/** What it ends as when the kernel ended a part of it for its memory. */
export function starved({ group, record }: Run): Ending | undefined {
  return group !== undefined && group.usage().oomKills > 0 ? killedForMemory(record.size.memoryMb) : undefined;
}

/** Notes the memory that each run holds; those that hold more than their slots have, with what they end as. */
export function overMemory(runs: Iterable<Run>): { readonly run: Run; readonly ending: Ending }[] {
  const all = [...runs];
  const over = lookAtMemory(all).map(({ run, usedMb }) => ({
    run,
    ending: outOfMemory(usedMb, run.record.size.memoryMb),
  }));
  const killed = all.flatMap((run) => {
    const ending = run.phase === 'running' ? starved(run) : undefined;
    return ending === undefined ? [] : [{ run, ending }];
  });
  return [...over, ...killed];
}
