import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive, type ProcessIdentity, processIdentity } from '../../util/process-identity.ts';
import { processes, processesOf, signal } from '../host/processes.ts';
import type { Run } from './run.ts';
import { STARTER } from './shell.ts';
import { WAITER } from './waiter/waiter.ts';

type Traces = Pick<Run, 'key' | 'shell' | 'group'>;

/** Between two looks at all processes, and at the one that will write the record, milliseconds. */
const LOOK_MS = 50;
const WAIT_MS = 200;
/** A process that is just being made into another has no environment: one look is not enough. */
const LOOKS = 2;

/**
 * Waits until nothing lives of a run whose shell is no more, or its record is there. Whatever will write that is waited for;
 * without it nobody could tell how the program ended, and what is left is killed.
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

/** All that lives of a run: in its shell's session, in its group, and what has its key in the environment. */
export function livingOf({ key, shell, group }: Traces): ProcessIdentity[] {
  const pids = new Set(processesOf(new Set([key])).map(({ pid }) => pid));
  for (const pid of group?.pids() ?? []) pids.add(pid);
  if (shell !== undefined && !isTaken(shell))
    for (const { pid, session } of processes()) if (session === shell.pid) pids.add(pid);
  return [...pids].map((pid) => processIdentity(pid)).filter(({ started }) => started !== '' && started !== 'zombie');
}

/** Its number is another process's by now, and so may be its session. */
function isTaken({ pid, started }: ProcessIdentity): boolean {
  const now = processIdentity(pid).started;
  return now !== '' && now !== 'zombie' && now !== started;
}

const KEEPERS: ReadonlySet<string> = new Set([WAITER, 'waiter.sh', STARTER]);

/** The waiter; or a copy of the shell that becomes it, or looks after a container. */
function keepsRecord({ pid }: ProcessIdentity): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').slice(0, 4);
    return words.some((word) => KEEPERS.has(basename(word)));
  } catch {
    return false;
  }
}
