import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '../../util/process-identity.ts';
import { shellQuote, shellWords } from '../../util/shell-quote.ts';
import type { AttemptRecord } from './attempt-place.ts';
import { adVariables } from './job-script.ts';
import { killed, NO_RECORD, scratchOf, TaskRunnerSlot } from './task-runner-slot.ts';
import { type Runner, Shell, STARTER } from './shell.ts';
import { RECORD_BYTES, waited } from './waiter/waiter.ts';
import type { RunSpec } from '../wire/wire.ts';

/** A task runner's shell is replaced after so many tasks: its files grow. */
const TASKS = 5000;
/** What is kept of the disk for the ends of tasks to be written down in, bytes. */
const RESERVED_BYTES = 60 * RECORD_BYTES;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

export type LightSpec = RunSpec & { readonly shared: NonNullable<RunSpec['shared']> };

/** A run that needs nothing but a directory of this machine: no sandbox, no files to carry, no input. */
export function isLight(spec: RunSpec): spec is LightSpec {
  const { shared, env, joinStderr, proxy, core } = spec;
  return (
    shared !== undefined &&
    shared.stdin === undefined &&
    proxy === undefined &&
    core === undefined &&
    shared.executable.startsWith('/') &&
    !joinStderr &&
    Object.keys(env).every((name) => IDENTIFIER.test(name))
  );
}

/** What jobs must have in common to be run by one shell, one after another: all but their arguments. */
export function commonOf(spec: LightSpec): string {
  return JSON.stringify({ ...spec, args: [] });
}

/** What a task runner writes of a task before its shell hears of it; a line of the file `told`. */
export interface ToldTask {
  readonly n: number;
  readonly key: AttemptRecord['key'];
  readonly claim: string;
  readonly size: AttemptRecord['size'];
  readonly lease: number;
  readonly args: readonly string[];
  /** Which of the task runner's files are its streams. */
  readonly file: number;
  /** When it was told, Unix seconds. */
  readonly at: number;
  /** Tasks that were forgotten since the line before. */
  readonly gone: readonly number[];
  /** It is a job, with a scratch directory of its own. */
  readonly own?: true;
}

/** The first line of `told`. */
export interface ToldTaskRunner {
  readonly shell: ProcessIdentity;
  readonly spec: RunSpec;
}

export interface TaskRunnerOptions {
  /** task-runner.sh's text. */
  readonly script: string;
  /** The words that wait for a program. */
  readonly waiter: readonly string[];
  /** Where task runners' directories are. */
  readonly taskRunnersDir: string;
  readonly env: NodeJS.ProcessEnv;
  /** What all of its tasks have in common. */
  readonly base: string;
  readonly spec: LightSpec;
  /** They are jobs. */
  readonly own?: boolean;
}

/**
 * A shell that runs a map's tasks, or jobs that differ in their arguments alone, one after another, with one directory for all of them: a task costs one line in a
 * file that is open already. The files of its streams are used again when it is forgotten, and nothing of it runs that could
 * write to them: to make files and remove them costs more. What is told to the shell is on disk before.
 */
export class TaskRunner implements Runner {
  readonly base: string;
  readonly dir: string;
  readonly #shell: Shell;
  readonly #told: number;
  /** Bytes of whole lines in it. */
  #size = 0;
  readonly #program: string;
  readonly #cwd: string;
  readonly #own: boolean;
  readonly #slots = new Map<string, TaskRunnerSlot>();
  /** Files that nobody has. */
  readonly #files: number[] = [];
  #gone: number[] = [];
  #most = 0;
  #count = 0;
  #running: { readonly slot: TaskRunnerSlot; readonly done: () => void } | undefined;
  #text = '';
  #closed = false;

  /** Throws where the disk is full. */
  constructor({ script, waiter, taskRunnersDir, env, base, spec, own = false }: TaskRunnerOptions) {
    this.base = base;
    this.#own = own;
    this.dir = join(taskRunnersDir, randomBytes(6).toString('hex'));
    this.#program = spec.shared.executable;
    this.#cwd = spec.shared.cwd;
    mkdirSync(join(this.dir, 'work'), { recursive: true, mode: 0o700 });
    this.#told = openSync(join(this.dir, 'told'), 'a', 0o600);
    this.#shell = new Shell({
      args: ['-s', STARTER, this.dir],
      cwd: this.dir,
      env,
      onText: (text) => this.#hear(text),
      onEnd: () => this.#ended(),
    });
    try {
      writeFileSync(join(this.dir, 'reserved'), Buffer.alloc(RESERVED_BYTES), { mode: 0o600 });
      this.#write({ shell: this.identity, spec });
    } catch (thrown) {
      this.#shell.end();
      throw thrown;
    }
    this.#shell.write(`${prologue(this.dir, spec, waiter, own)}${script}`);
  }

  get identity(): ProcessIdentity {
    return this.#shell.identity;
  }

  get alive(): boolean {
    return this.#shell.alive;
  }

  /** It should run no more. */
  get tired(): boolean {
    return this.#count >= TASKS;
  }

  /** Writes a task down: it is this task runner's from now on. Throws where the disk is full. */
  give({ key, claim, size, lease, spec }: AttemptRecord): TaskRunnerSlot {
    const n = this.#count++;
    const file = this.#files.pop() ?? this.#most++;
    const gone = this.#gone;
    this.#gone = [];
    const at = Math.round(Date.now() / 10) / 100;
    const own = this.#own ? ({ own: true } as const) : {};
    try {
      const scratch = scratchOf(this.dir, file);
      if (this.#own && !existsSync(scratch)) mkdirSync(scratch, { mode: 0o700 });
      this.#write({ n, key, claim, size, lease, args: spec.args, file, at, gone, ...own } satisfies ToldTask);
    } catch (thrown) {
      this.#gone.push(...gone);
      this.#files.push(file);
      throw thrown;
    }
    const slot = new TaskRunnerSlot({
      dir: this.dir,
      n,
      file,
      at,
      ...own,
      onRemoved: () => this.#removed(key, n),
      onFree: () => this.#files.push(file),
    });
    this.#slots.set(key, slot);
    slot.taskRunner = this;
    slot.message = shellWords([this.#program, ...spec.args]);
    if (this.#own) slot.before = this.#before(slot.work);
    return slot;
  }

  run(key: string, done: () => void): void {
    const slot = this.#slots.get(key);
    if (!slot || !this.alive) return queueMicrotask(done);
    this.#running = { slot, done };
    slot.began = Math.round(Date.now() / 10) / 100;
    this.tell(`{ ${slot.before}gryphus_run ${slot.n} ${slot.file} ${shellQuote(key)} ${slot.message}; }\n`);
    slot.message = '';
  }

  /** A piece of the shell's input, as it is. */
  tell(text: string): void {
    this.#shell.write(text);
  }

  signal(name: NodeJS.Signals): void {
    this.#shell.signal(name);
  }

  end(): void {
    this.#shell.end();
  }

  /** Its directory may be another by now, under the same name. */
  #before(scratch: string): string {
    const variables = Object.entries({ _CONDOR_SCRATCH_DIR: scratch, ...adVariables(scratch) });
    const own = variables.map(([name, value]) => `${name}=${shellQuote(value)}; `);
    return `cd ${shellQuote(this.#cwd)} || exit 216; ${own.join('')}`;
  }

  #write(line: ToldTaskRunner | ToldTask): void {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#told, bytes, done);
    } catch (thrown) {
      // Half a line would make the next one unreadable.
      ftruncateSync(this.#told, this.#size);
      throw thrown;
    }
    this.#size += bytes.length;
  }

  /** Of each task, in order, its record; or `N 0 HOW`, where there is none. */
  #hear(text: string): void {
    this.#text += text;
    if (!this.#text.endsWith('\n')) return;
    const said = this.#text;
    this.#text = '';
    const running = this.#running;
    if (!running) return;
    const { slot } = running;
    const record = waited(said);
    const [, n, how] = NO_RECORD.exec(said) ?? [];
    if (record === undefined && Number(n) !== slot.n) return;
    slot.ended = record ?? killed(Date.now() / 1000);
    slot.failed = how !== undefined && how !== 'killed';
    // Half a line may stand in its log now.
    slot.spaceless = how === 'spaceless';
    if (slot.spaceless) this.#count = TASKS;
    this.#running = undefined;
    running.done();
  }

  #ended(): void {
    const running = this.#running;
    this.#running = undefined;
    running?.done();
    this.#clear();
  }

  #removed(key: string, n: number): void {
    this.#slots.delete(key);
    this.#gone.push(n);
    this.#clear();
  }

  #clear(): void {
    if (this.alive || this.#slots.size > 0) return;
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#told);
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** What is said to the shell before task-runner.sh. */
export function prologue(dir: string, { env, shared }: LightSpec, waiter: readonly string[], own = false): string {
  const variables = { ...env, _CONDOR_SCRATCH_DIR: join(dir, 'work'), BATCH_SYSTEM: 'Gryphus' };
  return [
    `gryphus_d=${shellQuote(dir)}`,
    `exec 2>>"$gryphus_d/said" 7<>"$gryphus_d/reserved" 8>&1 9>>"$gryphus_d/log" 1>&9`,
    `cd ${shellQuote(shared.cwd)} || exit 216`,
    'umask 022',
    ...Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuote(value)}`),
    // Each job sets its own.
    ...(own ? [`export ${Object.keys(adVariables('')).join(' ')}`] : []),
    // A function of one command, for which no copy of the shell is made.
    `gryphus_wait() { ${shellWords(waiter)} "$@" </dev/null >"$gryphus_f.out" 2>"$gryphus_f.err"; }`,
    '',
  ].join('\n');
}
