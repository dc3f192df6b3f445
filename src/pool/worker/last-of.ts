import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive, type ProcessIdentity, processIdentity } from '../../util/process-identity.ts';
import { belowOf, processes, processesOf, processesOfAccount, signal } from '../host/processes.ts';
import type { Run } from './run.ts';
import { STARTER } from './shell.ts';
import { WAITER } from './waiter/waiter.ts';

type Traces = Pick<Run, 'key' | 'shell' | 'group'>;

/**
 * Intervals between scans of all processes, and between checks of the process that will write the record, in
 * milliseconds.
 */
const LOOK_MS = 50;
const WAIT_MS = 200;
/** A process that is in the middle of execve(2) shows no environment, so one clean scan is not enough. */
const LOOKS = 2;

/**
 * For a run whose shell has ended: waits until none of its processes is alive or its record exists. A process that will
 * still write the record is waited for; if there is none, nobody could tell how the program ended, and the remaining
 * processes are killed.
 */
export async function lastOf(run: Traces & Pick<Run, 'dir'>, closing: AbortSignal): Promise<void> {
  let keeper: ProcessIdentity | undefined;
  let clean = 0;
  while (!closing.aborted && clean < LOOKS && !run.dir.exit()) {
    if (keeper === undefined || !isAlive(keeper)) {
      const living = livingOf(run);
      keeper = living.find(keepsRecord);
      clean = living.length === 0 ? clean + 1 : 0;
      if (keeper === undefined) for (const { pid } of living) signal(pid, 'SIGKILL');
    }
    await delay(keeper ? WAIT_MS : LOOK_MS);
  }
}

/** All live processes of a run: those in its shell's session, in its cgroup, or with its key in the environment, and below them. */
export function livingOf({ key, shell, group }: Traces): ProcessIdentity[] {
  const pids = new Set(processesOf(new Set([key])).map(({ pid }) => pid));
  for (const pid of group?.pids() ?? []) pids.add(pid);
  if (shell !== undefined && !isTaken(shell))
    for (const { pid, session } of processes()) if (session === shell.pid) pids.add(pid);
  // A job that was restored in a session of its own shows the environment of the attempt before.
  for (const pid of belowOf(pids)) pids.add(pid);
  return [...pids].map((pid) => processIdentity(pid)).filter(({ started }) => started !== '' && started !== 'zombie');
}

/**
 * What a stranger runs, without what the worker put around it: the processes of its account below its shell, whatever they did
 * to their session and environment.
 */
export function livingOfStranger(run: Traces & Pick<Run, 'record'>): ProcessIdentity[] {
  const { shell, record } = run;
  const pids = new Set([...livingOf(run).map(({ pid }) => pid), ...(shell ? belowOf([shell.pid]) : [])]);
  const uid = record.user?.uid ?? -1;
  return processesOfAccount(uid)
    .filter((pid) => pids.has(pid))
    .map((pid) => processIdentity(pid));
}

/** Whether its process id has been reused, in which case its session id may have been too. */
function isTaken({ pid, started }: ProcessIdentity): boolean {
  const now = processIdentity(pid).started;
  return now !== '' && now !== 'zombie' && now !== started;
}

const KEEPERS: ReadonlySet<string> = new Set([WAITER, 'waiter.sh', STARTER]);

/** Whether it is the waiter, or a fork of the shell that will become the waiter or looks after a container. */
export function keepsRecord({ pid }: ProcessIdentity): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').slice(0, 4);
    return words.some((word) => KEEPERS.has(basename(word)));
  } catch {
    return false;
  }
}
