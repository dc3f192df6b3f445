import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { partnerNames } from '../config/agreements.ts';
import type { Paths } from '../config/paths.ts';

const AGAIN_MS = 1000;
/** What ran under the last agreement is ended within this time, in milliseconds. */
const LAST_JOBS_MS = 15_000;

/** It idles most of the time: its few megabytes are collected seldom, and without waking other threads. */
const SPARING = ['--single-threaded-gc', '--min-semi-space-size=4'];

/** Keeps the gateway of the flock running while there are agreements with other pools. */
export class FlockKeeper {
  readonly #agent: string;
  readonly #paths: Paths;
  readonly #log: (message: string, facts?: object) => void;
  #child: ChildProcess | undefined;
  #endedAt = Number.NEGATIVE_INFINITY;
  #leaving = false;

  constructor(agent: string, paths: Paths, log: (message: string, facts?: object) => void) {
    this.#agent = agent;
    this.#paths = paths;
    this.#log = log;
  }

  /** When the last agreement was removed, by the monotonic clock in milliseconds. */
  #removedAt: number | undefined;

  /** Whether there are agreements, or jobs of one that was removed may run, and so a pool is needed. */
  isWanted = false;

  /** Called repeatedly; returns `isWanted`. */
  look(): boolean {
    const isFlock = partnerNames(this.#paths).length > 0;
    const now = performance.now();
    if (isFlock) {
      this.#removedAt = undefined;
      if (!this.#child && !this.#leaving && now - this.#endedAt > AGAIN_MS) this.#start();
    } else if (this.#child) {
      this.#removedAt ??= now;
      if (now - this.#removedAt > LAST_JOBS_MS) this.close();
    }
    this.isWanted = isFlock || this.#child !== undefined;
    return this.isWanted;
  }

  /** From now on, a gateway that ends is not replaced. */
  leave(): void {
    this.#leaving = true;
  }

  /** The gateway may still have something to write: it is asked to end. */
  close(): void {
    this.#child?.kill('SIGTERM');
  }

  #start(): void {
    const child = fork(fileURLToPath(new URL('../flock/main.js', import.meta.url)), [this.#agent], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [...process.execArgv, ...SPARING],
    });
    let message = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      message = (message + text).slice(-2000);
    });
    const gone = (code: number | null): void => {
      if (this.#child !== child) return;
      this.#child = undefined;
      this.#endedAt = performance.now();
      this.#log('the gateway of the flock ended', { code, message: message.trim() });
    };
    child.once('error', (error) => {
      message = error.message;
      gone(null);
    });
    child.once('exit', gone);
    this.#child = child;
    this.#log('the gateway of the flock started', { process: child.pid });
  }
}
