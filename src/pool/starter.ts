import { type ChildProcess, spawn } from 'node:child_process';
import { type ProcessIdentity, processIdentity } from '../util/process-identity.ts';
import { signal } from './processes.ts';

/**
 * A shell that runs attempts one after another, in a session of its own. It costs one fork for each attempt, and it ends
 * the attempt that it runs in order when the worker is gone.
 */
export class Starter {
  readonly identity: ProcessIdentity;
  readonly #child: ChildProcess;
  #onDone: ((ended: boolean) => void) | undefined;
  #text = '';

  /** `script`: starter.sh's text; `jobsDir`: where attempts' directories are. */
  constructor(script: string, jobsDir: string, env: NodeJS.ProcessEnv) {
    this.#child = spawn('/bin/sh', ['-c', script, 'gryphus-starter'], {
      cwd: jobsDir,
      env,
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.identity = this.#child.pid === undefined ? { pid: 0, started: '' } : processIdentity(this.#child.pid);
    this.#child.on('error', () => this.#done(false));
    this.#child.on('exit', () => this.#done(false));
    this.#child.stdin?.on('error', () => undefined);
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text;
      if (!this.#text.endsWith('\n')) return;
      this.#text = '';
      this.#done(true);
    });
    this.#child.unref();
  }

  get alive(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid(): number {
    return this.identity.pid;
  }

  /** `done` is called once: the attempt left its record, or (`false`) the shell ended before it could. */
  run(directory: string, done: (recorded: boolean) => void): void {
    this.#onDone = done;
    if (!this.alive) queueMicrotask(() => this.#done(false));
    else this.#child.stdin?.write(`${directory}\n`);
  }

  /** To the program and all that it started in this session; the shell itself passes over what can be passed over. */
  signal(name: NodeJS.Signals): void {
    if (this.alive) signal(-this.pid, name);
  }

  /** It ends when it has nothing to run. */
  end(): void {
    this.#child.stdin?.end();
  }

  #done(recorded: boolean): void {
    const call = this.#onDone;
    this.#onDone = undefined;
    call?.(recorded);
  }
}
