import { processIdentity, type ProcessIdentity } from '../../util/process-identity.ts';
import { isStopped, parentOf, processesOfAccount, signal } from '../host/processes.ts';
import { keepsRecord, livingOf, livingOfStranger } from './last-of.ts';
import type { Run } from './run.ts';

/** Scans for processes that run: a program may fork while it is being stopped. */
const TURNS = 50;

/**
 * Suspends all processes of a run (`still`), or resumes them; false if some could not be suspended. The waiter goes on:
 * it uses no processor, and has to see how the program ends.
 */
export function halt(run: Run, still: boolean): boolean {
  if (run.isOver) return true;
  const frozen = run.group?.freeze(still) === true;
  if (frozen && !run.record.user?.alone) return true;
  for (let turn = 0; turn < TURNS; turn++) {
    const found = run.record.user?.stranger ? livingOfStranger(run) : [...livingOf(run), ...hiddenOf(run)];
    const all = (frozen ? hiddenOf(run) : found).filter((one) => one.pid !== run.shell?.pid && !isKeeper(run, one));
    const others = still ? all.filter(({ pid }) => !isStopped(pid)) : all;
    if (still && others.length === 0) return true;
    for (const { pid } of others) signal(pid, still ? 'SIGSTOP' : 'SIGCONT');
    if (!still) return true;
  }
  return false;
}

/** Those that use the account of its slot, though they may have left its session and cleared their environment. */
function hiddenOf({ record: { user } }: Run): ProcessIdentity[] {
  return user?.alone ? processesOfAccount(user.uid).map((pid) => processIdentity(pid)) : [];
}

function isKeeper({ shell }: Run, one: Parameters<typeof keepsRecord>[0]): boolean {
  return shell !== undefined && parentOf(one.pid) === shell.pid && keepsRecord(one);
}
