import { pathOrStart } from '../../job/start-directory.ts';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessIdentity } from '../../util/process-identity.ts';
import { shellQuote, shellWords } from '../../util/shell-quote.ts';
import type { AttemptRecord } from './attempt-place.ts';
import { adVariables, slotVariable } from './job-script.ts';
import { removeLeft } from './remove-left.ts';
import { hasSmallFiles, ReusedSandbox } from './reused-sandbox.ts';
import { killed, NO_RECORD, scratchOf, TaskRunnerSlot } from './task-runner-slot.ts';
import { type Runner, Shell, STARTER } from './shell.ts';
import type { TaskRecord } from './task-record.ts';
import { RECORD_BYTES, waited } from './waiter/waiter.ts';
import type { RunSpec } from '../wire/wire.ts';

/** A task runner's shell is replaced after this many tasks, since its files grow. */
const TASKS = 5000;
/** The disk space reserved for the exit records of tasks, in bytes. */
const RESERVED_BYTES = 60 * RECORD_BYTES;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Whether a run can share a task runner with others: it needs only a directory of this machine, or few small files. */
export function isLight(spec: RunSpec): boolean {
  const { shared, env, proxy, core, cwd, container, ioProxy } = spec;
  return (
    proxy === undefined &&
    ioProxy === undefined &&
    core === undefined &&
    (shared === undefined
      ? cwd === undefined && container === undefined && hasSmallFiles(spec)
      : shared.executable.startsWith('/')) &&
    Object.keys(env).every((name) => IDENTIFIER.test(name))
  );
}

/** What jobs must have in common to share a task runner: everything but their arguments and the content of their inputs. */
export function commonOf(spec: RunSpec): string {
  const { shared, stdin } = spec;
  return JSON.stringify({ ...spec, args: [], inputs: [], ...(shared || !stdin ? {} : { stdin: true }) });
}

export interface TaskRunnerOptions {
  /** The text of task-runner.sh. */
  readonly script: string;
  /** The command that runs and waits for a program. */
  readonly waiter: readonly string[];
  /** The parent of the task runners' directories. */
  readonly taskRunnersDir: string;
  readonly env: NodeJS.ProcessEnv;
  /** Identifies what all of its tasks have in common. */
  readonly base: string;
  readonly spec: RunSpec;
  /** Its tasks are jobs. */
  readonly own?: boolean;
}

/**
 * A shell that runs a map's tasks, or jobs that differ only in their arguments, one after another, with one directory
 * for all: a task costs one line in an open file. The files of a task's streams are reused when it has been forgotten
 * and none of its processes can write to them any more, since creating and removing files costs more. The command is
 * written to disk before it is sent to the shell.
 */
export class TaskRunner implements Runner {
  readonly base: string;
  readonly dir: string;
  readonly #shell: Shell;
  readonly #records: number;
  /** The length of its complete lines, in bytes. */
  #size = 0;
  readonly #spec: RunSpec;
  /** As JSON. */
  readonly #inputs: string;
  readonly #own: boolean;
  /** By the number of their files; unused for jobs that run in a directory of this machine. */
  readonly #sandboxes = new Map<number, ReusedSandbox>();
  readonly #slots = new Map<string, TaskRunnerSlot>();
  /** Numbers of files that are not in use. */
  readonly #files: number[] = [];
  #gone: number[] = [];
  #most = 0;
  #count = 0;
  #running: { readonly slot: TaskRunnerSlot; readonly done: () => void } | undefined;
  #text = '';
  #closed = false;

  /** Throws if the disk is full. */
  constructor({ script, waiter, taskRunnersDir, env, base, spec, own = false }: TaskRunnerOptions) {
    this.base = base;
    this.#own = own;
    this.dir = join(taskRunnersDir, randomBytes(6).toString('hex'));
    this.#spec = spec;
    this.#inputs = JSON.stringify(spec.inputs);
    mkdirSync(join(this.dir, 'work'), { recursive: true, mode: 0o700 });
    this.#records = openSync(join(this.dir, 'told'), 'a', 0o600);
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

  /** Whether it should run no more tasks. */
  get tired(): boolean {
    return this.#count >= TASKS;
  }

  /** Records a task, which belongs to this task runner from now on. `name`: of its slot. Throws if the disk is full. */
  give({ key, claim, size, lease, spec }: AttemptRecord, name?: string): TaskRunnerSlot {
    const n = this.#count++;
    const file = this.#files.pop() ?? this.#most++;
    const gone = this.#gone;
    this.#gone = [];
    const at = Math.round(Date.now() / 10) / 100;
    const own = this.#own ? ({ own: true } as const) : {};
    const differs = JSON.stringify(spec.inputs) !== this.#inputs;
    try {
      const scratch = scratchOf(this.dir, file);
      if (this.#own && !existsSync(scratch)) mkdirSync(scratch, { mode: 0o700 });
      const line = { n, key, claim, size, lease, args: spec.args, file, at, gone, ...own };
      this.#write(differs ? { ...line, inputs: spec.inputs } : line);
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
      ...(spec.shared === undefined && { sandbox: this.#sandbox(file) }),
      onRemoved: () => this.#removed(key, n),
      onFree: () => this.#files.push(file),
    });
    this.#slots.set(key, slot);
    slot.taskRunner = this;
    slot.message = shellWords([programOf(spec), ...spec.args]);
    if (this.#own) slot.before = this.#before(slot.work, name);
    return slot;
  }

  #sandbox(file: number): ReusedSandbox {
    const known = this.#sandboxes.get(file) ?? new ReusedSandbox(scratchOf(this.dir, file));
    this.#sandboxes.set(file, known);
    return known;
  }

  run(key: string, done: () => void): void {
    const slot = this.#slots.get(key);
    if (!slot || !this.alive) return queueMicrotask(done);
    this.#running = { slot, done };
    slot.began = Math.round(Date.now() / 10) / 100;
    this.tell(`{ ${slot.before}gryphus_run ${slot.n} ${slot.file} ${shellQuote(key)} ${slot.message}; }\n`);
    slot.message = '';
  }

  /** Sends text to the shell's standard input unchanged. */
  tell(text: string): void {
    this.#shell.write(text);
  }

  signal(name: NodeJS.Signals): void {
    this.#shell.signal(name);
  }

  end(): void {
    this.#shell.end();
  }

  /** Changes into the directory for each job: the path may name a different directory by now. */
  #before(scratch: string, slot: string | undefined): string {
    const start = this.#spec.shared?.cwd ?? scratch;
    const shared = this.#spec.shared !== undefined;
    const here = Object.entries(this.#spec.env).flatMap(([name, value]) => {
      const path = pathOrStart(value);
      return path === undefined ? [] : [[name, shared ? path : scratch] as const];
    });
    const condor = { _CONDOR_SCRATCH_DIR: scratch, ...adVariables(scratch), ...slotVariable(slot) };
    const variables = [...Object.entries(condor), ...here];
    const own = variables.map(([name, value]) => `${name}=${shellQuote(value)}; `);
    return `cd ${shellQuote(start)} || exit 216; ${own.join('')}`;
  }

  #write(line: TaskRecord): void {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#records, bytes, done);
    } catch (thrown) {
      // An incomplete line would make the next one unreadable.
      ftruncateSync(this.#records, this.#size);
      throw thrown;
    }
    this.#size += bytes.length;
  }

  /** Handles the shell's reports: for each task, in order, its record, or `N 0 HOW` if there is none. */
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
    // Its log may now end in an incomplete line.
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
    closeSync(this.#records);
    removeLeft(this.dir);
  }
}

function programOf({ shared, executable }: RunSpec): string {
  return shared?.executable ?? (executable.kind === 'there' ? executable.path : './condor_exec.exe');
}

/** The shell commands that precede task-runner.sh. */
export function prologue(dir: string, spec: RunSpec, waiter: readonly string[], own = false): string {
  const { env, shared, stdin, joinStderr } = spec;
  const input =
    shared?.stdin === undefined ? (stdin && !shared ? '"$gryphus_f.in"' : '/dev/null') : shellQuote(shared.stdin);
  const errors = joinStderr ? '2>&1' : '2>"$gryphus_f.err"';
  const variables = { ...env, _CONDOR_SCRATCH_DIR: join(dir, 'work'), BATCH_SYSTEM: 'Gryphus' };
  return [
    `gryphus_d=${shellQuote(dir)}`,
    `exec 2>>"$gryphus_d/said" 7<>"$gryphus_d/reserved" 8>&1 9>>"$gryphus_d/log" 1>&9`,
    ...(shared ? [`cd ${shellQuote(shared.cwd)} || exit 216`] : []),
    'umask 022',
    ...Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuote(value)}`),
    // Each job sets its own values.
    ...(own ? [`export ${Object.keys(adVariables('')).join(' ')}`] : []),
    // A function with a single command, for which the shell does not fork a copy of itself.
    `gryphus_wait() { ${shellWords(waiter)} "$@" <${input} >"$gryphus_f.out" ${errors}; }`,
    '',
  ].join('\n');
}
