import { GryphusError } from '../../errors.ts';
import type { Ending, PreemptedBy } from '../../site/contract.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { startTimer } from '../../util/long-timer.ts';
import { parentOf, processesOf, processesOfAccount, Scan, signal } from '../host/processes.ts';
import { halt } from './halt.ts';
import { TOLD_MS } from './before-end.ts';
import { type Run, wasTerminated } from './run.ts';
import { wantsCheckpoint } from './wants-checkpoint.ts';

const GRACE_SECONDS = 10;

/** Seconds between asking a run to end and killing it. */
export function graceOf({ record }: Run): number {
  return record.spec.vacateSeconds ?? GRACE_SECONDS;
}

/**
 * Asks a run to end, and kills it if it does not within its own time, or `mostSeconds` if that is less. Its ending is
 * written to disk first.
 */
export function stop(run: Run, ending: Ending, mostSeconds = Number.POSITIVE_INFINITY): void {
  if (run.stopping || !decide(run, ending)) return;
  run.stopping = true;
  crashPoint('worker.before-stop');
  if (!run.save || !isEviction(ending) || !wantsCheckpoint(run)) return ask(run, mostSeconds);
  run.timers.push(setTimeout(() => kill(run), Math.min(CHECKPOINT_SECONDS, mostSeconds) * 1000));
  // A frozen process cannot be traced.
  run.group?.freeze(false);
  const { save, saving = Promise.resolve() } = run;
  run.saving = saving
    .then(() => save(true))
    .then((trouble) => {
      if (trouble === undefined || run.phase === 'ended') return;
      if (run.dir.exit()) return endedMeanwhile(run, ending);
      run.decided = withTrouble(ending, trouble);
      decide(run, run.decided);
      ask(run, mostSeconds);
    });
}

/** The most time for a checkpoint of a run that has to end, in seconds. */
const CHECKPOINT_SECONDS = 600;

function isEviction({ how }: Ending): boolean {
  return how.kind === 'by-site' && how.cause === 'preempted';
}

function withTrouble(ending: Ending, trouble: string): Ending {
  const { how } = ending;
  return how.kind === 'by-site'
    ? { how: { ...how, message: `${how.message} (not checkpointed: ${trouble})` } }
    : ending;
}

function ask(run: Run, mostSeconds: number): void {
  // What is suspended meets the signal when it is resumed, before it does anything else.
  run.signal((run.record.spec.killSignal as NodeJS.Signals | undefined) ?? 'SIGTERM');
  halt(run, false);
  run.signal('SIGCONT');
  const ms = Math.min(graceOf(run), mostSeconds) * 1000;
  startTimer(
    ms,
    () => kill(run),
    (timer) => void run.timers.push(timer),
  );
}

/** Kills a run at once, also one that was asked to end. */
export function stopNow(run: Run, ending: Ending): void {
  if (!decide(run, ending)) return;
  run.stopping = true;
  kill(run);
}

function kill(run: Run): void {
  run.signal('SIGKILL');
  void run.group?.kill();
  void killAll(new Set([run.key]));
}

/** Writes how it will have ended; false if it runs no program. */
function decide(run: Run, ending: Ending): boolean {
  if (run.phase === 'staging') run.aborted = true;
  if (run.phase === 'staging' || run.phase === 'ended' || (!run.decided && endedBefore(run, ending))) return false;
  run.decided ??= ending;
  noteEnding(run, run.decided);
  return true;
}

/**
 * Whether its program had ended by itself before this was decided, though that is not reported yet: its container is being
 * removed, or its home has not answered. One that was terminated, or ended together with its worker, may have been told to
 * by the same signal.
 */
function endedBefore({ dir }: Run, ending: Ending): boolean {
  const exit = dir.exit();
  if (!exit || wasTerminated(exit)) return false;
  return !isDrained(ending) || Date.now() / 1000 - exit.endedAt > TOLD_MS / 1000;
}

/** Its program has ended by itself before it could be checkpointed: it has not been evicted, and its results count. */
function endedMeanwhile(run: Run, ending: Ending): void {
  const exit = run.dir.exit();
  if (!exit || exit.how.kind === 'signaled' || run.brokenSave || isDrained(ending)) return;
  run.decided = undefined;
  run.dir.undecide();
}

function isDrained({ how }: Ending): boolean {
  return how.kind === 'by-site' && how.by === 'drain';
}

/** Writes an ending to disk. A full disk must not keep a run alive; after a crash its ending is then unknown. */
export function noteEnding({ dir }: Run, ending: Ending): void {
  try {
    dir.decide(ending);
  } catch {
    // No space left.
  }
}

/**
 * The ending of a run whose files cannot be placed because of what it names itself ('output-missing'); `undefined` for
 * other errors.
 */
export function unplaced(run: Run, error: Error): Ending | undefined {
  if (!(error instanceof GryphusError) || error.code !== 'output-missing') return undefined;
  const at = Math.round(Date.now() / 10) / 100;
  run.startedAt = at;
  const ending: Ending = { how: { kind: 'by-site', cause: 'cannot-start', message: error.message } };
  noteEnding(run, ending);
  return { ...ending, startedAt: at, endedAt: at };
}

/**
 * A run may use this much of the minute that the central manager waits beyond its lease: then it may run elsewhere.
 */
const AFTER_LEASE_SECONDS = 45;

/** Ends the runs whose lease is shorter than `seconds`, the time since the central manager was last heard. */
export function endLeases(runs: Iterable<Run>, seconds: number): void {
  for (const run of runs) {
    if (run.phase === 'ended' || run.killed || seconds <= run.record.lease) continue;
    const ending = evicted("its worker did not hear from the agent for the job's whole lease", 'lease');
    const left = run.record.lease + AFTER_LEASE_SECONDS - seconds;
    if (left > 0) stop(run, ending, left);
    else {
      // Also one that was asked to end before, and may take long.
      run.killed = true;
      stopNow(run, ending);
    }
  }
}

/**
 * Kills all processes of these attempts until two scans in a row find none: a process in the middle of execve(2) shows
 * no environment. Children of the processes in `but` are spared.
 */
export async function killAll(
  keys: ReadonlySet<string>,
  but: ReadonlySet<number> = new Set(),
  scan: Pick<Scan, 'processesOf'> = { processesOf },
  wanted: () => boolean = () => true,
): Promise<void> {
  for (let turn = 0, clean = 0; turn < 50 && clean < 2 && wanted(); turn++) {
    const found = scan.processesOf(keys).filter(({ pid }) => !but.has(parentOf(pid) ?? 0));
    clean = found.length === 0 ? clean + 1 : 0;
    for (const { pid } of found) signal(pid, 'SIGKILL');
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

/**
 * Short runs that end within this time share a scan of all processes. Their files are reused after it, so a shorter time means
 * fewer files. Milliseconds.
 */
const SWEEP_MS = 100;

/**
 * The shells of runs, whose children are spared: the waiter of a program that has ended is about to exit by itself, and
 * if it were killed, the shell would report that in the program's standard error.
 */
function shellsOf(runs: Iterable<Run>): ReadonlySet<number> {
  return new Set([...runs].flatMap(({ shell }) => (shell ? [shell.pid] : [])));
}

/** Kills what is left of a run that has ended, such as processes that forked away. `runs`: all that are here. */
export async function sweep(run: Run, runs: Iterable<Run>): Promise<void> {
  await Promise.all([killAll(new Set([run.key]), shellsOf([run])), run.group?.end()]);
  await clearAccount(run, runs);
  run.dir.swept();
}

/**
 * Kills what still runs under the account of a run that has ended, if only one job uses it at a time. A run that an
 * earlier worker had seen end may have given its account to another one since then.
 */
export async function clearAccount({ key, record: { user } }: Run, runs: Iterable<Run>): Promise<void> {
  if (!user?.alone) return;
  const isPassedOn = [...runs].some(
    (other) => other.key !== key && other.phase !== 'ended' && other.record.user?.uid === user.uid,
  );
  if (!isPassedOn) await killAccount(user.uid);
}

/** Kills everything that runs under an account which only one job uses, until two scans in a row find nothing. */
async function killAccount(uid: number): Promise<void> {
  for (let turn = 0, clean = 0; turn < 50 && clean < 2; turn++) {
    const found = uid > 0 ? processesOfAccount(uid) : [];
    clean = found.length === 0 ? clean + 1 : 0;
    for (const pid of found) signal(pid, 'SIGKILL');
    if (clean < 2) await new Promise((resume) => setTimeout(resume, 20));
  }
}

/** Kills what is left of short runs soon after they ended, many at a time. */
export class Sweeper {
  readonly #scan = new Scan();
  #runs = new Map<string, Run>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  add(run: Run): void {
    this.#runs.set(run.key, run);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const runs = this.#runs;
      this.#runs = new Map();
      void killAll(new Set(runs.keys()), shellsOf(runs.values()), this.#scan, () => !this.#closed).then(() => {
        for (const { dir, group } of runs.values()) {
          dir.swept();
          void group?.end();
        }
      });
    }, SWEEP_MS);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }
}

export function evicted(message: string, by: PreemptedBy): Ending {
  return { how: { kind: 'by-site', cause: 'preempted', message, by } };
}

export function cancelled(message: string): Ending {
  return { how: { kind: 'by-site', cause: 'cancelled', message } };
}

export function timeout(seconds: number): Ending {
  return { how: { kind: 'by-site', cause: 'timeout', message: `it ran for ${seconds} s` } };
}

/** The kernel's OOM killer killed it. */
export function killedForMemory(most: number): Ending {
  return { how: { kind: 'by-site', cause: 'out-of-memory', message: `it used all of its ${most} MB` } };
}

export function outOfMemory(used: number, most: number): Ending {
  return { how: { kind: 'by-site', cause: 'out-of-memory', message: `it used ${used} MB of ${most}` } };
}
