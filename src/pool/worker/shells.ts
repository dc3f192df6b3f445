import { type ChildProcess, spawn } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { AttemptKey } from '../../job/ids.ts';
import { childrenOf, signal } from '../host/processes.ts';
import { beforeAndAfter, entering } from './job-script.ts';
import { identityVariables, type JobUser } from './job-users.ts';
import type { Run } from './run.ts';
import { environmentBeside } from './environment-beside.ts';
import { shellText } from '../wire/shell-text.ts';
import type { ForShells, FromWorker } from '../wire/wire.ts';

type Orders = Exclude<ForShells, { readonly t: 'shell-out' | 'shell-over' }>;
type Say = (message: Extract<FromWorker, { readonly t: 'shell-out' | 'shell-over' }>, bytes?: Uint8Array) => void;

interface Open {
  readonly child: ChildProcess;
  readonly say: Say;
  readonly stays: boolean;
}

export interface ShellsOptions {
  readonly find: (key: AttemptKey) => Run | undefined;
  /** The part of the worker's environment that jobs see. */
  readonly env: NodeJS.ProcessEnv;
  readonly say: (message: FromWorker, bytes?: Uint8Array) => void;
  /** The words before a command that let it run as that user. */
  readonly become: (user: JobUser) => readonly string[];
  /** Bytes waiting to be sent. */
  readonly backlog: () => number;
}

const MOST_BACKLOG = 4 << 20;
const LOOK_MS = 50;
const GRACE_MS = 2000;
/** The exit status that ssh also uses for its own failures. */
const FAILED = 255;

/**
 * Users' shells beside running jobs: in the job's directory, with its environment. They end with the job, because they
 * carry its key as all its processes do.
 */
export class Shells {
  readonly #options: ShellsOptions;
  readonly #open = new Map<string, Open>();

  constructor(options: ShellsOptions) {
    this.#options = options;
  }

  /** Handles a message for a shell; `say` gets what it says. */
  take(message: Orders, bytes: Buffer, say: Say = this.#options.say): void {
    if (message.t === 'shell') this.#start(message, say);
    else if (message.t === 'shell-size') this.#resize(message);
    else if (message.t === 'shell-close') this.#end(message.shell);
    else {
      const stdin = this.#open.get(message.shell)?.child.stdin;
      if (bytes.length > 0) stdin?.write(Buffer.from(bytes));
      if (message.end) stdin?.end();
    }
  }

  /** Nobody is left to read what they write: ends all shells but those of parallel jobs, which end with their jobs. */
  close(): void {
    for (const [shell, { stays }] of this.#open) if (!stays) this.#end(shell);
  }

  #start({ shell, key, command, tty, stays }: Extract<ForShells, { t: 'shell' }>, say: Say): void {
    const { find, env, become } = this.#options;
    const run = find(key);
    if (!run || (run.phase !== 'running' && run.phase !== 'suspended'))
      return say({ t: 'shell-over', shell, status: FAILED, message: 'The job is not running here.' });
    const { spec } = run.record;
    const cwd = spec.shared?.cwd ?? spec.cwd ?? run.dir.work;
    const own = { ...environmentBeside(run), ...(tty && { TERM: tty.term }) };
    const { user } = run.record;
    const inside = ['/bin/sh', '-c', inGroup(run, shellText(command, tty))];
    const theirs = { ...(user && identityVariables(user, run.dir.work)), ...own };
    const { before, after } = user ? beforeAndAfter(theirs) : { before: theirs, after: [] };
    const [program = '', ...words] = [...(user ? become(user) : []), ...after, ...inside];
    const child = spawn(program, words, {
      cwd,
      env: { ...env, ...before },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#open.set(shell, { child, say, stays: stays === true });
    child.stdin.on('error', () => undefined);
    this.#pump(shell, 'stdout', child.stdout);
    this.#pump(shell, 'stderr', child.stderr);
    child.once('error', (error) => this.#over(shell, FAILED, `It could not be started: ${error.message}.`));
    child.once('close', (code, name) => {
      const message = name === null ? undefined : `It was killed by ${name}.`;
      this.#over(shell, code ?? FAILED, message);
    });
  }

  /** Sets the terminal's size; the kernel notifies the programs that use it. */
  #resize({ shell, rows, cols }: Extract<ForShells, { t: 'shell-size' }>): void {
    const terminal = terminalUnder(this.#open.get(shell)?.child.pid);
    if (terminal === undefined) return;
    const size = ['rows', String(rows), 'cols', String(cols)];
    spawn('stty', ['-F', terminal, ...size], { env: this.#options.env, stdio: 'ignore' }).on('error', () => undefined);
  }

  #over(shell: string, status: number, message?: string): void {
    const open = this.#open.get(shell);
    if (!open) return;
    this.#open.delete(shell);
    open.say({ t: 'shell-over', shell, status, ...(message === undefined ? {} : { message }) });
  }

  #pump(shell: string, stream: 'stdout' | 'stderr', from: Readable): void {
    from.on('error', () => undefined);
    from.on('data', (bytes: Buffer) => {
      const open = this.#open.get(shell);
      if (!open) return;
      open.say({ t: 'shell-out', shell, stream }, bytes);
      if (this.#options.backlog() > MOST_BACKLOG) this.#wait(from);
    });
  }

  #wait(from: Readable): void {
    from.pause();
    const timer = setInterval(() => {
      if (this.#options.backlog() > MOST_BACKLOG) return;
      clearInterval(timer);
      from.resume();
    }, LOOK_MS);
    timer.unref();
  }

  #end(shell: string): void {
    const child = this.#open.get(shell)?.child;
    this.#open.delete(shell);
    if (child?.pid === undefined) return;
    const { pid } = child;
    child.stdin?.end();
    signal(-pid, 'SIGHUP');
    const timer = setTimeout(() => {
      if (child.exitCode === null && child.signalCode === null) signal(-pid, 'SIGKILL');
    }, GRACE_MS);
    timer.unref();
  }
}

/** A node's commands count as the node does: they enter its control group. */
function inGroup({ variables, group }: Run, text: string): string {
  return variables ? [...entering(group?.doors), text].join('\n') : text;
}

/** The terminal that script(1) allocated for its command. */
function terminalUnder(pid: number | undefined): string | undefined {
  for (const child of pid === undefined ? [] : childrenOf(pid)) {
    try {
      const terminal = readlinkSync(`/proc/${child}/fd/0`);
      if (terminal.startsWith('/dev/pts/')) return terminal;
    } catch {
      // It has ended in the meantime.
    }
  }
  return undefined;
}
