import { type ChildProcess, spawn } from 'node:child_process';
import { type ProcessIdentity, processIdentity } from '../../util/process-identity.ts';
import { signal } from '../host/processes.ts';

export interface ShellOptions {
  /** The arguments of `/bin/sh`. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Receives what the shell writes to its standard output. */
  readonly onText: (text: string) => void;
  /** The shell has ended. Called once or twice. */
  readonly onEnd: () => void;
}

/** A word on the command line of each such shell and of its forks. */
export const STARTER = 'gryphus-starter';

/** A shell in its own session, which outlives the worker that started it until its work is done. */
export class Shell {
  readonly identity: ProcessIdentity;
  readonly #child: ChildProcess;

  constructor({ args, cwd, env, onText, onEnd }: ShellOptions) {
    this.#child = spawn('/bin/sh', args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
    this.identity = this.#child.pid === undefined ? { pid: 0, started: '' } : processIdentity(this.#child.pid);
    this.#child.on('error', onEnd);
    this.#child.on('exit', onEnd);
    this.#child.stdin?.on('error', () => undefined);
    this.#child.stdout?.setEncoding('utf8').on('data', onText);
    this.#child.unref();
  }

  get alive(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  /**
   * Signals the program and all that it started in this session; the shell itself ignores the signals that can be
   * ignored.
   */
  signal(name: NodeJS.Signals): void {
    if (this.alive) signal(-this.identity.pid, name);
  }

  /** The shell ends when it has nothing left to run. */
  end(): void {
    this.#child.stdin?.end();
  }
}

/** Runs attempts one after another. */
export interface Runner extends Pick<Shell, 'identity' | 'alive' | 'signal' | 'end'> {
  /** `done` is called once, when the attempt has left its record or the shell ended before it could. */
  run(key: string, done: () => void): void;
}
