import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Ending } from '../../site/contract.ts';
import { AD_NAMES } from './ad-files.ts';
import { storedOr } from '../../util/stored-json.ts';
import { isAlive, type ProcessIdentity } from '../../util/process-identity.ts';
import {
  type AttemptPlace,
  type AttemptRecord,
  type RunExitRecord,
  readEnding,
  secondsOf,
  writeEnding,
} from './attempt-place.ts';
import { type Cgroup, type GroupDirs, groupIn } from './cgroup.ts';
import { removeLeft } from './remove-left.ts';
import { ReusedSandbox } from './reused-sandbox.ts';
import type { Runner } from './shell.ts';
import { TASK_RECORD } from './task-record.ts';
import { waited } from './waiter/waiter.ts';

const BEGUN = /^(\d+)$/;
/** The shell's report of a task that left no record; `spaceless` never appears in the log. */
export const NO_RECORD = /^(\d+) 0 (killed|failed|spaceless)$/m;
const SUFFIX = { stdout: 'out', stderr: 'err' } as const;

export interface TaskRunnerSlotOptions {
  readonly dir: string;
  /** Its number in the task runner. */
  readonly n: number;
  /** The number of the task runner's files that hold its streams. */
  readonly file: number;
  /** When it was recorded, in Unix seconds. */
  readonly at: number;
  /** It is a job: it has its own scratch directory, and may take long. */
  readonly own?: true;
  readonly onRemoved: () => void;
  /** Its sandbox, if it has files of its own there. */
  readonly sandbox?: ReusedSandbox;
  /** Called when its files may be reused. */
  readonly onFree?: () => void;
}

/** A task's place in the directory of its task runner. */
export class TaskRunnerSlot implements AttemptPlace {
  readonly n: number;
  readonly file: number;
  readonly #options: TaskRunnerSlotOptions;
  readonly #dir: string;
  readonly #sizes: { stdout: number | undefined; stderr: number | undefined } = {
    stdout: undefined,
    stderr: undefined,
  };
  #marked = false;
  #removed = false;
  #swept = false;
  /** What runs it; unset for a task of an earlier worker. */
  taskRunner: Runner | undefined;
  /** Its program and arguments as shell text, until it is sent to the shell. */
  message = '';
  /** Shell commands to run before it: empty, or ending in a semicolon. */
  before = '';
  /** When the shell was told to start it, in Unix seconds; unknown for a task of an earlier worker. */
  began: number | undefined;
  /** As reported by the shell; for a task of an earlier worker, it is read from the log. */
  ended: RunExitRecord | undefined;
  /** The shell reported that it could not start it. */
  failed = false;
  /** There was no space to record that it started. */
  spaceless = false;

  constructor(options: TaskRunnerSlotOptions) {
    this.n = options.n;
    this.file = options.file;
    this.#dir = options.dir;
    this.#options = options;
  }

  get own(): boolean {
    return this.#options.own === true;
  }

  get sandbox(): ReusedSandbox | undefined {
    return this.#options.sandbox;
  }

  get work(): string {
    return this.own ? scratchOf(this.#dir, this.file) : join(this.#dir, 'work');
  }

  get stdin(): string {
    return join(this.#dir, `${this.file}.in`);
  }

  stream(name: 'stdout' | 'stderr'): string {
    return join(this.#dir, `${this.file}.${SUFFIX[name]}`);
  }

  size(stream: 'stdout' | 'stderr'): number {
    const size = statSync(this.stream(stream), { throwIfNoEntry: false })?.size ?? 0;
    this.#sizes[stream] = size;
    return size;
  }

  /** Recorded for jobs only: tasks are short. */
  noteMemory(kb: number): void {
    if (!this.own) return;
    this.#marked = true;
    try {
      writeFileSync(this.#memory, String(kb), { mode: 0o600 });
    } catch {
      // No space left: after a crash of the worker the peak is unknown.
    }
  }

  memory(): number {
    return this.own ? Number(readText(this.#memory)) || 0 : 0;
  }

  startedAt(): number | undefined {
    if (this.ended) return this.failed ? undefined : this.began;
    const logged = loggedIn(this.#dir).get(this.n);
    return logged === undefined || logged === 'failed' ? undefined : (this.began ?? this.#options.at);
  }

  exit(): RunExitRecord | undefined {
    // While the shell is alive, it will report the end.
    if (this.ended || (this.began !== undefined && this.taskRunner?.alive)) return this.ended;
    const logged = loggedIn(this.#dir).get(this.n);
    return typeof logged === 'object' ? logged : undefined;
  }

  decide(ending: Ending): void {
    this.#marked = true;
    writeEnding(this.#ending, ending);
  }

  undecide(): void {
    rmSync(this.#ending, { force: true });
  }

  decided(): Ending | undefined {
    return readEnding(this.#ending);
  }

  said(): string {
    if (this.spaceless) return 'no space left for its record';
    return readText(join(this.#dir, 'said')).trim().split('\n').at(-1) || 'its shell could not start it';
  }

  remove(): void {
    for (const name of ['stdout', 'stderr'] as const) {
      try {
        if (this.#sizes[name] !== 0) truncateSync(this.stream(name));
      } catch {
        // Its program was not started.
      }
    }
    if (this.began === undefined || this.#marked)
      for (const path of [this.#ending, this.#memory, this.#group]) rmSync(path, { force: true });
    this.#options.onRemoved();
    this.#removed = true;
    if (this.#swept) this.#free();
  }

  swept(): void {
    this.#swept = true;
    if (this.#removed) this.#free();
  }

  /** Its files may be reused: none of its processes can write to them any more. */
  #free(): void {
    try {
      // The ad files are rewritten for the next job.
      if (this.own) (this.sandbox ?? new ReusedSandbox(this.work)).empty(AD_NAMES);
    } catch {
      // The job has removed its directory, or it cannot be emptied: the next job gets another.
      return;
    }
    this.#options.onFree?.();
  }

  noteGroup(places: GroupDirs): void {
    this.#marked = true;
    writeFileSync(this.#group, JSON.stringify(places), { mode: 0o600 });
  }

  group(): Cgroup | undefined {
    return this.own ? groupIn(this.#group) : undefined;
  }

  get #group(): string {
    return join(this.#dir, `${this.n}.group`);
  }

  get #memory(): string {
    return join(this.#dir, `${this.n}.memory`);
  }

  get #ending(): string {
    return join(this.#dir, `${this.n}.ending`);
  }
}

/**
 * The tasks that an earlier worker's task runners recorded and did not forget. Task runners without any are removed.
 */
export function taskRunnersIn(
  taskRunnersDir: string,
): { record: AttemptRecord; slot: TaskRunnerSlot; shell: ProcessIdentity }[] {
  return readdirSync(taskRunnersDir).flatMap((name) => {
    const dir = join(taskRunnersDir, name);
    const [taskRunner, ...tasks] = readText(join(dir, 'told'))
      .split('\n')
      // An incomplete line is ignored: the shell was never told of its task.
      .flatMap((line) => storedOr(TASK_RECORD, line) ?? []);
    const records = tasks.flatMap((task) => ('n' in task ? [task] : []));
    const gone = new Set(records.flatMap((task) => task.gone));
    const left = records.filter(({ n }) => !gone.has(n));
    const open = new Set(left.map(({ n }) => n));
    const removed = (n: number) => {
      open.delete(n);
      if (open.size === 0) removeLeft(dir);
    };
    if (!taskRunner || !('shell' in taskRunner) || left.length === 0) {
      if (!taskRunner || !('shell' in taskRunner) || !isAlive(taskRunner.shell)) removeLeft(dir);
      return [];
    }
    const { shell, spec } = taskRunner;
    return left.map(({ n, file, at, key, claim, size, lease, args, inputs = spec.inputs, own }) => ({
      record: { key, claim, size, lease, spec: { ...spec, args, inputs } },
      slot: new TaskRunnerSlot({ dir, n, file, at, ...(own && { own }), onRemoved: () => removed(n) }),
      shell,
    }));
  });
}

/** Whether it is a task of a map, whose progress nobody follows. */
export function isTask(place: AttemptPlace): boolean {
  return place instanceof TaskRunnerSlot && !place.own;
}

/** The scratch directory of the jobs that successively use the files with this number. */
export function scratchOf(dir: string, file: number): string {
  return join(dir, `${file}.work`);
}

/** What the log says of each task that was started in a task runner. */
function loggedIn(dir: string): ReadonlyMap<number, RunExitRecord | 'begun' | 'failed'> {
  const tasks = new Map<number, RunExitRecord | 'begun' | 'failed'>();
  let last: number | undefined;
  for (const line of readText(join(dir, 'log')).split('\n')) {
    const begun = BEGUN.exec(line)?.[1];
    const [, n, how] = NO_RECORD.exec(line) ?? [];
    if (n !== undefined) tasks.set(Number(n), how === 'failed' ? 'failed' : killed(secondsOf(join(dir, 'log')) ?? 0));
    else if (begun !== undefined) tasks.set((last = Number(begun)), 'begun');
    else if (last !== undefined) tasks.set(last, waited(line) ?? tasks.get(last) ?? 'begun');
  }
  // Records for which the log had no space, in order.
  const kept = readText(join(dir, 'reserved'))
    .split('\n')
    .flatMap((line) => waited(line) ?? []);
  for (const [n, is] of tasks) if (is === 'begun') tasks.set(n, kept.shift() ?? is);
  return tasks;
}

/** The record of a waiter that was killed at this time (Unix seconds), together with its program. */
export function killed(at: number): RunExitRecord {
  const how = { kind: 'signaled', signal: 9 } as const;
  return { how, userSeconds: 0, systemSeconds: 0, maxRssKb: 0, endedAt: Math.round(at * 100) / 100 };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
