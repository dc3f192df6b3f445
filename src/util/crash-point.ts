import { readFileSync, rmSync } from 'node:fs';

type JobManagerStep = 'delegate' | 'prepare' | 'commit' | 'poll' | 'cancel' | 'fetch' | 'forget';
type GridManagerStep = JobManagerStep | 'take' | 'decide' | 'reconcile' | 'grant';

/**
 * Every named point in our own processes where a crash matters. `gm`: the GridManager around each work; `jm`: the
 * client around each exchange with a site; `checkpoint`: the way of a job's image from and to a worker; `restore`: after
 * each step of a restored backup; `queue`: around the step that carries an older state over; `worker` and
 * `central-manager`: the pool around each promise; `flock` and `flock-lender`: a gateway that borrows, and one that
 * lends; `direct` and `inputs`: on the way of results from the worker itself, and of inputs to it, in both gateways and the worker. The site's half has its own (src/jobmanager/crash-points.ts), and so has gryphus-helper (`crash_point` in
 * native/).
 */
export type CrashPoint =
  | `gm.${'before' | 'after' | 'saved'}-${GridManagerStep}`
  | `checkpoint.${'before-save' | 'saved' | 'taken' | 'kept' | 'sent' | 'before-restore'}`
  | `jm.${'before' | 'after'}-${JobManagerStep}`
  | `worker.${'before-record' | 'saved-record' | 'before-start' | 'after-start' | 'before-stop' | 'before-end' | 'after-end'}`
  | `queue.${'carrying' | 'carried-over' | 'noted'}`
  | `restore.${'unpacked' | 'reading' | 'prepared' | 'placed'}`
  | `flock.${'before' | 'saved'}-${'accept' | 'commit' | 'end' | 'drop' | 'forget'}`
  | `direct.${'asked' | 'told' | 'dialled' | 'up' | 'read'}`
  | `inputs.${'asked' | 'told' | 'dialled' | 'up' | 'pulled' | 'served'}`
  | `flock-lender.${'before' | 'saved'}-${'prepare' | 'commit' | 'end' | 'forget'}`
  | `central-manager.${'before' | 'saved'}-${'prepare' | 'commit' | 'grant' | 'end' | 'forget' | 'gang' | 'go'}`
  | `central-manager.before-${'over' | 'release'}`;

/** Thrown at a crash point in the in-process mode; code that catches it must rethrow it. */
export class SimulatedCrash extends Error {
  override readonly name = 'SimulatedCrash';
}

const FILE = process.env['GRYPHUS_CRASH_FILE'];
let armed = fromEnv();
let throws = false;

/**
 * A no-op, unless the test run named this point: `GRYPHUS_CRASH_POINT=name` or `name:count` (the count-th pass). Then
 * the process kills itself with SIGKILL, as in a power failure. With `GRYPHUS_CRASH_FILE=FILE` the file names the point
 * while processes run, and the first process to reach it removes the file and dies; with `!` before the name, every
 * process that reaches it dies.
 */
export function crashPoint(name: CrashPoint): void {
  if (FILE !== undefined && isNamedIn(FILE, name)) process.kill(process.pid, 'SIGKILL');
  if (armed === undefined || armed.name !== name) return;
  armed.left -= 1;
  if (armed.left > 0) return;
  armed = undefined;
  if (throws) throw new SimulatedCrash(name);
  process.kill(process.pid, 'SIGKILL');
}

/** For tests in one process: the count-th pass of `name` throws a SimulatedCrash, once. `undefined` disarms it. */
export function armCrash(name: CrashPoint | undefined, count = 1): void {
  throws = true;
  armed = name === undefined ? undefined : { name, left: count };
}

function isNamedIn(file: string, name: CrashPoint): boolean {
  try {
    const named = readFileSync(file, 'utf8').trim();
    if (named === name) rmSync(file);
    return named === name || named === `!${name}`;
  } catch {
    return false;
  }
}

function fromEnv(): { name: string; left: number } | undefined {
  const [name, count] = (process.env['GRYPHUS_CRASH_POINT'] ?? '').split(':');
  return name ? { name, left: Math.max(1, Number(count ?? 1) || 1) } : undefined;
}
