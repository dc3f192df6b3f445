import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isAlive, type ProcessIdentity } from '../util/process-identity.ts';
import { type Child, plan, type Trouble, troubleAfter } from './plan.ts';

export interface ChildrenOptions {
  /** The environment of the GridManager processes; never contains secrets. */
  readonly env: NodeJS.ProcessEnv;
  /** Longest wait before one that keeps dying is restarted, milliseconds. */
  readonly longestWaitMs: () => number;
  readonly onStart: (child: Child) => void;
  readonly onEnd: (child: Child, clean: boolean, message: string) => void;
  readonly now?: () => number;
}

interface Running extends Child {
  /** Asks it to shut down, and kills it after `patienceMs`; resolves when it is gone. */
  readonly end: (patienceMs: number) => Promise<void>;
  readonly kill: () => void;
  /** Why it was killed, if it was. */
  killed?: string;
}

/** How often to check whether an adopted process still runs, milliseconds. */
const LOOK_MS = 500;

/**
 * The GridManagers of this Scheduler. They are separate processes and survive a Scheduler that is killed: the next
 * Scheduler adopts them, with their open connections.
 */
export class Children {
  readonly #options: ChildrenOptions;
  readonly #running = new Map<string, Running>();
  readonly #troubles = new Map<string, Trouble>();
  #leaving = false;

  constructor(options: ChildrenOptions) {
    this.#options = options;
  }

  get running(): readonly Child[] {
    return [...this.#running.values()].map(({ identity, pid, startedAt }) => ({ identity, pid, startedAt }));
  }

  /** From now on, none is started. */
  leave(): void {
    this.#leaving = true;
  }

  /** Starts missing GridManagers. Returns after how many milliseconds to call it again, if one has to wait. */
  ensure(wanted: ReadonlySet<string>): number | undefined {
    if (this.#leaving) return undefined;
    let again: number | undefined;
    for (const step of plan(this.#now(), wanted, this.#running, this.#troubles, this.#options.longestWaitMs())) {
      if (step.do === 'start') this.#start(step.identity);
      else again = Math.min(again ?? Number.POSITIVE_INFINITY, step.untilMs - this.#now());
    }
    return again;
  }

  /** Asks all to shut down, and waits for them; kills them after `patienceMs`. */
  async end(patienceMs: number): Promise<void> {
    this.leave();
    await Promise.all([...this.#running.values()].map((child) => child.end(patienceMs)));
  }

  /** Kills one that hangs, if it is still the same process; another is started in its place. */
  replace({ identity, pid }: Pick<Child, 'identity' | 'pid'>, why: string): void {
    const child = this.#running.get(identity);
    if (child?.pid !== pid) return;
    child.killed = why;
    child.kill();
  }

  /** Adopts a GridManager that an earlier Scheduler started. */
  adopt(identity: string, daemon: ProcessIdentity & { readonly since: number }): void {
    const child: Running = {
      identity,
      pid: daemon.pid,
      startedAt: daemon.since,
      end: (patienceMs: number) => endAdopted(daemon, patienceMs),
      kill: () => killAdopted(daemon),
    };
    this.#running.set(identity, child);
    const timer = setInterval(() => {
      if (isAlive(daemon)) return;
      clearInterval(timer);
      this.#ended(child, true, 'it was started by an earlier Scheduler');
    }, LOOK_MS);
    timer.unref();
  }

  #start(identity: string): void {
    const main = fileURLToPath(new URL(`../gridmanager/main.js`, import.meta.url));
    const process_ = spawn(process.execPath, [main, identity], {
      // Waiting for the disk: the results of many jobs are placed at once.
      env: { ...this.#options.env, UV_THREADPOOL_SIZE: '16' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const child: Running = {
      identity,
      pid: process_.pid ?? 0,
      startedAt: this.#now(),
      end: (patienceMs: number) => endProcess(process_, patienceMs),
      kill: () => void process_.kill('SIGKILL'),
    };
    let message = '';
    process_.stderr?.setEncoding('utf8').on('data', (text: string) => {
      message = (message + text).slice(-2000);
    });
    this.#running.set(identity, child);
    if (process_.pid !== undefined) this.#options.onStart(child);
    process_.once('error', (error) => this.#ended(child, false, error.message));
    process_.once('close', (code, signal) => {
      const how = signal === null ? `exit status ${code}` : `signal ${signal}`;
      this.#ended(child, code === 0, message.trim() === '' ? how : `${how}: ${message.trim()}`);
    });
  }

  #ended(child: Running, clean: boolean, message: string): void {
    if (!this.#running.delete(child.identity)) return;
    if (child.killed !== undefined) [clean, message] = [false, child.killed];
    const now = this.#now();
    const trouble = troubleAfter(this.#troubles.get(child.identity), clean, now - child.startedAt, now);
    if (trouble) this.#troubles.set(child.identity, trouble);
    else this.#troubles.delete(child.identity);
    this.#options.onEnd(child, clean, message);
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

async function endProcess(child: ChildProcess, patienceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  // Not 'close': what it started may hold its standard error open.
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
  await gone;
  clearTimeout(timer);
}

function killAdopted(daemon: ProcessIdentity): void {
  if (!isAlive(daemon)) return;
  try {
    process.kill(daemon.pid, 'SIGKILL');
  } catch {
    // It is gone.
  }
}

async function endAdopted(daemon: ProcessIdentity, patienceMs: number): Promise<void> {
  const deadline = Date.now() + patienceMs;
  for (let name: NodeJS.Signals = 'SIGTERM'; isAlive(daemon); ) {
    try {
      if (name === 'SIGTERM' || Date.now() > deadline) process.kill(daemon.pid, name);
      name = 'SIGKILL';
    } catch {
      // It is gone.
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}
