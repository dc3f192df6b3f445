import { setTimeout as sleep } from 'node:timers/promises';
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { formatJobId, type JobId } from '../job/ids.ts';
import { type CentralManagerClient, askCentralManager } from '../pool/central-manager-client.ts';
import type { UsageMachine } from '../queue/usage-day.ts';
import { Heartbeats } from './heartbeat.ts';
import { type Trouble, restartDelay, troubleAfter } from './plan.ts';

export interface PoolKeeperOptions {
  /** The agent's id. */
  readonly agent: string;
  readonly env: NodeJS.ProcessEnv;
  /** The central manager's socket for clients. */
  readonly socket: string;
  /** A central manager that has not answered for this long is considered hung, milliseconds. */
  readonly hungAfterMs: () => number;
  /** Longest wait before a central manager that keeps dying is restarted, milliseconds. */
  readonly longestWaitMs: number;
  readonly log: (message: string, facts?: object) => void;
}

/** How long the machines are waited for, in milliseconds. */
const SLOTS_MS = 5000;
/** The same once the Scheduler is to end: its last look at the machines. */
const LAST_MS = 500;
/**
 * How long a central manager that ended in order is not replaced, in milliseconds: it was told to end, and at a shutdown so is this
 * process.
 */
const TOLD_MS = 2000;

/**
 * Keeps the pool's central manager running once it has been needed. A new central manager takes over from the one of an
 * earlier Scheduler.
 */
export class PoolKeeper {
  readonly #options: PoolKeeperOptions;
  #centralManager: ChildProcess | undefined;
  #trouble: Trouble | undefined;
  #again: NodeJS.Timeout | undefined;
  #wanted = false;
  readonly #leaving = new AbortController();
  readonly #heartbeats = new Heartbeats();
  readonly #beats: CentralManagerClient;
  #isAsking = false;
  #answers = 0;

  constructor(options: PoolKeeperOptions) {
    this.#options = options;
    this.#beats = askCentralManager(options.socket, 'heartbeat');
  }

  /** From now on, a central manager that ends is not replaced. */
  leave(): void {
    this.#leaving.abort();
    clearTimeout(this.#again);
    void this.#beats.close();
  }

  /** The pool is needed: starts the central manager if it is not running. */
  want(): void {
    if (this.#leaving.signal.aborted) return;
    this.#wanted = true;
    if (!this.#centralManager && !this.#again) this.#start();
  }

  /**
   * Asks the central manager to shut down, and waits for it; kills it after `patienceMs`. Its workers' jobs keep
   * running.
   */
  async end(patienceMs: number): Promise<void> {
    this.leave();
    const centralManager = this.#centralManager;
    if (!centralManager) return;
    // It may have ended, while something that it started holds its standard error open.
    if (centralManager.exitCode !== null || centralManager.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => centralManager.once('exit', () => resolve()));
    centralManager.kill('SIGTERM');
    const timer = setTimeout(() => centralManager.kill('SIGKILL'), patienceMs);
    await gone;
    clearTimeout(timer);
  }

  /** Replaces a central manager that hangs, which would otherwise delay all its jobs forever. */
  look(): void {
    const pid = this.#centralManager?.pid;
    if (pid === undefined) return;
    this.#ask();
    const beat = { identity: 'central-manager', pid, beat: String(this.#answers) };
    if (this.#heartbeats.look([beat], this.#options.hungAfterMs()).length === 0) return;
    this.#options.log("the pool's central manager hangs; killing it", { centralManager: pid });
    this.#centralManager?.kill('SIGKILL');
  }

  /** Vacates these jobs; those that no longer run in the pool are ignored. */
  async vacate(ids: readonly JobId[]): Promise<void> {
    const { agent, socket } = this.#options;
    const client = askCentralManager(socket, 'keeper');
    try {
      await client.ask({ t: 'steer', jobs: ids.map((id) => `${agent}.${formatJobId(id)}`), how: 'vacate' }, 'steered');
    } finally {
      await client.close();
    }
  }

  /**
   * What a look at the pool's machines shows, of which the day has those named; nothing if no central manager answers, after `leave`
   * within half a second.
   */
  async machines(named: readonly string[]): Promise<ReadonlyMap<string, UsageMachine>> {
    if (!this.#centralManager) return new Map();
    const client = askCentralManager(this.#options.socket, 'keeper');
    const answer = client.ask({ t: 'machines', named: [...named] }, 'machines');
    const seen = answer.then(({ machines }) => new Map(Object.entries(machines)));
    const none = () => new Map<string, UsageMachine>();
    try {
      return await Promise.race([seen.catch(none), this.#late().then(none)]);
    } finally {
      await client.close();
    }
  }

  async #late(): Promise<void> {
    const last = () => sleep(LAST_MS, undefined, { ref: false });
    await sleep(SLOTS_MS, undefined, { ref: false, signal: this.#leaving.signal }).catch(last);
  }

  /** One request at a time: a central manager that hangs answers none. */
  #ask(): void {
    if (this.#isAsking || this.#leaving.signal.aborted) return;
    this.#isAsking = true;
    const over = (answered: boolean) => {
      if (answered) this.#answers += 1;
      this.#isAsking = false;
    };
    this.#beats.ask({ t: 'beat' }, 'done').then(
      () => over(true),
      () => over(false),
    );
  }

  #start(): void {
    const { agent, env, log } = this.#options;
    const main = fileURLToPath(new URL('../pool/central-manager/central-manager-main.js', import.meta.url));
    const centralManager = spawn(process.execPath, [main, agent], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const startedAt = Date.now();
    let message = '';
    centralManager.stderr?.setEncoding('utf8').on('data', (text: string) => {
      message = (message + text).slice(-2000);
    });
    centralManager.once('error', (error) => {
      message = error.message;
    });
    centralManager.once('close', (code) => {
      this.#centralManager = undefined;
      this.#ended(code === 0, startedAt, message.trim());
    });
    this.#centralManager = centralManager;
    log("the pool's central manager started", { centralManager: centralManager.pid });
  }

  #ended(clean: boolean, startedAt: number, message: string): void {
    if (!this.#wanted || this.#leaving.signal.aborted) return;
    const now = Date.now();
    this.#options.log("the pool's central manager ended", { message });
    this.#trouble = troubleAfter(this.#trouble, clean, now - startedAt, now);
    const wait = clean ? TOLD_MS : restartDelay(this.#trouble?.failures ?? 1, this.#options.longestWaitMs) / 10;
    this.#again = setTimeout(() => {
      this.#again = undefined;
      this.want();
    }, wait);
  }
}
