import { closeSync, openSync, readSync } from 'node:fs';
import { hostname } from 'node:os';
import type { AttemptKey } from '../../job/ids.ts';
import type { Ending } from '../../site/contract.ts';
import { sinceBootMs } from '../../util/boot-clock.ts';
import { isAlive, type ProcessIdentity } from '../../util/process-identity.ts';
import type { JobAdText } from './ad-files.ts';
import { AttemptDir, attemptsIn } from './attempt-dir.ts';
import type { AttemptPlace, AttemptRecord, RunExitRecord } from './attempt-place.ts';
import type { Cgroup } from './cgroup.ts';
import { NO_IMAGE } from './container-script.ts';
import { taskRunnersIn } from './task-runner-slot.ts';
import { livingOf, livingOfStranger } from './last-of.ts';
import { groupOutsideContainers, signal } from '../host/processes.ts';
import { lastLine } from './run-briefly.ts';
import type { Runner } from './shell.ts';
import { WatchedFiles } from './watched-files.ts';
import type { FromCentralManager, HeldAttempt } from '../wire/wire.ts';

/** Streams of up to this total size, in bytes, are sent with the report of the end. */
const INLINE = 32 << 10;
const PIECE = 256 << 10;
const HOST = hostname();

/** One attempt that a worker holds, from the central manager's order to start it until its order to forget it. */
export class Run {
  readonly key: AttemptKey;
  readonly record: AttemptRecord;
  readonly dir: AttemptPlace;
  phase: HeldAttempt['is'] = 'staging';
  /** Its runner, if this process started it; for an earlier worker's run only `shell` is known. */
  starter: Runner | undefined;
  shell: ProcessIdentity | undefined;
  names: readonly string[] = [];
  /** The cgroup of all its processes. */
  group: Cgroup | undefined;
  /** It joined its cgroup after it had started, so the cgroup's accounting is incomplete. */
  joinedLate = false;
  /** The central manager's order to start it, and the ad of its kind; unknown for an earlier worker's run. */
  received:
    | { readonly start: Extract<FromCentralManager, { readonly t: 'start' }>; readonly kind: JobAdText }
    | undefined;
  /** The path of its proxy. */
  proxy: string | undefined;
  startedAt: number | undefined;
  ending: Ending | undefined;
  /** The ending that we decided on, effective once it is over. */
  decided: Ending | undefined;
  /** It was asked to end. */
  stopping = false;
  /** It was killed because the agent may soon run it elsewhere. */
  killed = false;
  /** A node of a parallel job that has all it needs, and waits for the others. */
  ready = false;
  /** It has been told to start with the others. */
  told = false;
  /** Of such a node: the variables by which it starts commands at the others. */
  variables: Readonly<Record<string, string>> | undefined;
  /** Its program was terminated, and the worker has waited whether it is told to end, too. */
  waitedForTold = false;
  /** It was cancelled before it was started. */
  aborted = false;
  /** The agent does not know it: its end is not reported, and nothing of it is kept. */
  forgotten = false;
  /** An earlier worker left it: the central manager may have released its claim long ago. */
  found = false;
  peakRssKb = 0;
  /** Processor time used so far, in seconds, as of the last look. */
  cpuSeconds = 0;
  /** How much of the machine's load it was at the last look. */
  load = 0;
  timers: NodeJS.Timeout[] = [];
  /** Writes its image, and ends it with it (`kill`). Resolves with what prevented it. */
  save: ((kill: boolean) => Promise<string | undefined>) | undefined;
  /** While its image is being written. */
  saving: Promise<void> | undefined;
  /** The files of a job that ran under a subordinate user id are the worker's again. */
  isBack = false;
  /** The helper was killed while it wrote an image. */
  brokenSave = false;
  /** The CheckpointPlatform of the image that it left. */
  saved: string | undefined;
  /** Why it could not be restored from its image. */
  unrestored: string | undefined;
  following: { stdout: number; stderr: number } | undefined;
  watched: WatchedFiles | undefined;

  constructor(record: AttemptRecord, dir: AttemptPlace) {
    this.key = record.key;
    this.record = record;
    this.dir = dir;
  }

  view(): HeldAttempt {
    return {
      key: this.key,
      is: this.phase,
      ...(this.startedAt === undefined ? {} : { startedAt: this.startedAt }),
      ...(this.ending === undefined ? {} : { ending: this.ending }),
    };
  }

  /** Whether it has a sandbox, and results other than its streams. */
  get sandboxed(): boolean {
    return this.record.spec.shared === undefined && this.record.spec.cwd === undefined;
  }

  /** Its program has ended: what its shell runs by now may be the next attempt. */
  get isOver(): boolean {
    return this.phase === 'ended' || (this.found && this.dir.exit() !== undefined);
  }

  signal(name: NodeJS.Signals): void {
    if (this.isOver) return;
    if (this.record.user?.stranger && name !== 'SIGKILL')
      for (const { pid } of livingOfStranger(this)) signal(pid, name);
    // A runtime passes a signal on to its program, which would get it a second time with its group.
    else if (this.record.spec.container && this.shell && name !== 'SIGKILL')
      for (const pid of [...groupOutsideContainers(this.shell.pid), this.shell.pid]) signal(pid, name);
    else if (this.starter?.alive) this.starter.signal(name);
    else if (this.shell && isAlive(this.shell)) signal(-this.shell.pid, name);
    else for (const { pid } of livingOf(this)) signal(pid, name);
  }

  end(ending: Ending): void {
    this.ending = ending;
    this.phase = 'ended';
    this.starter = undefined;
  }

  /** From now on, sends what is written to its streams, from these offsets on, and the sizes of files. */
  follow({ stdout, stderr, files }: Omit<Extract<FromCentralManager, { t: 'follow' }>, 't' | 'key'>): void {
    this.following = { stdout, stderr };
    this.watched = files && this.sandboxed ? new WatchedFiles(this.dir.work, files) : undefined;
  }

  clearTimers(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers = [];
  }

  /** The ending that its exit record implies. */
  endingOf(exit: RunExitRecord | undefined): Ending {
    const at = this.startedAt;
    const group = this.joinedLate ? undefined : this.group?.usage();
    const most = this.record.spec.container ? 0 : (exit?.maxRssKb ?? 0);
    // If it ended before its memory was ever measured, the cgroup's peak is used.
    const held = group ? this.peakRssKb || group.peakKb || most : Math.max(this.peakRssKb, most);
    const facts = {
      host: HOST,
      ...(at === undefined ? {} : { startedAt: at }),
      endedAt: exit?.endedAt ?? Date.now() / 1000,
      usage: {
        ...(group && { userCpuSeconds: round(group.userSeconds), systemCpuSeconds: round(group.systemSeconds) }),
        // The CPU time of a container is not known.
        ...(!group &&
          exit &&
          !this.record.spec.container && {
            userCpuSeconds: round(exit.userSeconds),
            systemCpuSeconds: round(exit.systemSeconds),
          }),
        ...(held > 0 ? { maxRssKb: held } : {}),
      },
      stdoutBytes: this.dir.size('stdout'),
      stderrBytes: this.dir.size('stderr'),
    };
    if (this.saved !== undefined && this.decided?.how.kind === 'by-site')
      return { ...facts, ...this.decided, how: { ...this.decided.how, yielded: true, platform: this.saved } };
    if (this.decided) return { ...facts, ...this.decided, how: yielding(this.decided.how, exit) };
    if (this.unrestored !== undefined) {
      const message = `its checkpoint cannot be restored: ${this.unrestored}`;
      return { ...facts, how: { kind: 'by-site', cause: 'cannot-start', message } };
    }
    if (exit && this.dir.startedAt() === undefined) {
      const noImage = exit.how.kind === 'exited' && exit.how.code === NO_IMAGE;
      const cause = noImage ? 'no-image' : 'cannot-start';
      const said = this.dir.said();
      const message = this.record.spec.container ? lastLine(said) : said.slice(0, 500);
      return { ...facts, how: { kind: 'by-site', cause, message } };
    }
    if (!exit) {
      const message = 'the program and the shell that watched it were killed together';
      return { ...facts, how: { kind: 'by-site', cause: 'vanished', message } };
    }
    return { ...facts, how: exit.how };
  }

  /** Both streams, if they are small. */
  inline(): { readonly bytes: Buffer; readonly stdout: number; readonly stderr: number } | undefined {
    const { stdoutBytes: stdout = this.dir.size('stdout'), stderrBytes: stderr = this.dir.size('stderr') } =
      this.ending ?? {};
    if (stdout + stderr > INLINE) return undefined;
    if (stdout + stderr === 0) return { bytes: Buffer.alloc(0), stdout: 0, stderr: 0 };
    const bytes = Buffer.concat([this.piece('stdout', 0), this.piece('stderr', 0)]);
    return bytes.length === stdout + stderr ? { bytes, stdout, stderr } : undefined;
  }

  /** Some bytes of a stream, starting at `offset`. */
  piece(stream: 'stdout' | 'stderr', offset: number): Buffer {
    const there = Math.min(PIECE, this.dir.size(stream) - offset);
    if (there <= 0) return Buffer.alloc(0);
    const buffer = Buffer.allocUnsafe(there);
    const fd = openSync(this.dir.stream(stream), 'r');
    try {
      return buffer.subarray(0, readSync(fd, buffer, 0, there, offset));
    } finally {
      closeSync(fd);
    }
  }
}

/**
 * The runs that an earlier worker left in its directory. One whose record is incomplete never started, and is removed.
 */
export function runsIn(jobsDirs: readonly string[], taskRunnersDir: string): Run[] {
  const tasks = taskRunnersIn(taskRunnersDir).map(({ record, slot, shell }) => {
    const run = left(new Run(record, slot), shell);
    run.names = record.spec.inputs.map(({ name }) => name);
    run.group = slot.group();
    run.joinedLate = true;
    return run;
  });
  const places = jobsDirs.flatMap((jobsDir) => attemptsIn(jobsDir).map((key) => new AttemptDir(jobsDir, key)));
  const attempts = places.flatMap((dir) => {
    const record = dir.record();
    if (!record) {
      dir.remove();
      return [];
    }
    const armed = dir.armed();
    const run = left(new Run(record, dir), armed?.starter);
    run.names = armed?.names ?? [];
    run.group = dir.group();
    return [run];
  });
  return [...tasks, ...attempts];
}

function left(run: Run, shell: ProcessIdentity | undefined): Run {
  run.shell = shell;
  run.decided = run.dir.decided() ?? endedByShutdown(run.dir.exit());
  run.startedAt = run.dir.startedAt();
  run.peakRssKb = run.dir.memory();
  run.phase = shell ? 'running' : 'ended';
  return run;
}

export function wasTerminated(exit: RunExitRecord | undefined): boolean {
  return exit?.how.kind === 'signaled' && TOLD.has(exit.how.signal);
}

/** A shutdown tells all processes to end. A worker that had not seen the end of this one had no time left. */
function endedByShutdown(exit: RunExitRecord | undefined): Ending | undefined {
  if (!exit || !wasTerminated(exit) || exit.endedAt >= (Date.now() - sinceBootMs()) / 1000) return undefined;
  return { how: { kind: 'by-site', cause: 'preempted', message: 'its machine was shut down', by: 'drain' } };
}

/**
 * Marks a preempted run as yielded, unless it was killed (because it did not end in time, or by someone else) and so
 * was interrupted in the middle of its work.
 */
function yielding(how: Ending['how'], exit: RunExitRecord | undefined): Ending['how'] {
  if (how.kind !== 'by-site' || how.cause !== 'preempted' || !exit || wasKilled(exit)) return how;
  return { ...how, yielded: true };
}

/** The exit status by which a container runtime reports that the program was killed. */
const KILLED_INSIDE = 137;

function wasKilled({ how }: RunExitRecord): boolean {
  return how.kind === 'signaled' ? how.signal === SIGKILL : how.code === KILLED_INSIDE;
}

const SIGKILL = 9;
/** SIGHUP and SIGTERM: how all processes of a machine, an allocation or a session are told to end. */
const TOLD: ReadonlySet<number> = new Set([1, 15]);

function round(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e6;
}
