import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { formatJobId, type JobId } from '../job/ids.ts';
import { type DeskClient, deskToAsk } from '../pool/desk-client.ts';
import { Pulses } from './pulse.ts';
import { type Trouble, restartDelay, troubleAfter } from './plan.ts';

export interface PoolKeeperOptions {
  /** The agent's id. */
  readonly agent: string;
  readonly env: NodeJS.ProcessEnv;
  /** The desk's socket for clients. */
  readonly socket: string;
  /** A desk that answers nothing for so long hangs. */
  readonly hungAfterMs: () => number;
  /** The longest wait before a desk that keeps dying is started again, milliseconds. */
  readonly longestWaitMs: number;
  readonly log: (words: string, facts?: object) => void;
}

/** Keeps the pool's desk running from the first time that it is wanted. The desk takes over from one of an earlier Scheduler. */
export class PoolKeeper {
  readonly #options: PoolKeeperOptions;
  #desk: ChildProcess | undefined;
  #trouble: Trouble | undefined;
  #again: NodeJS.Timeout | undefined;
  #wanted = false;
  readonly #pulses = new Pulses();
  #client: DeskClient | undefined;
  #answers = 0;

  constructor(options: PoolKeeperOptions) {
    this.#options = options;
  }

  /** There is something for the pool to do. */
  want(): void {
    this.#wanted = true;
    if (!this.#desk && !this.#again) this.#start();
  }

  /** Asks the desk to end in order, and waits for it; after `patienceMs` it is killed. Its workers' jobs run on. */
  async end(patienceMs: number): Promise<void> {
    this.#wanted = false;
    clearTimeout(this.#again);
    const desk = this.#desk;
    if (!desk) return;
    const gone = new Promise<void>((resolve) => desk.once('close', () => resolve()));
    desk.kill('SIGTERM');
    const timer = setTimeout(() => desk.kill('SIGKILL'), patienceMs);
    await gone;
    clearTimeout(timer);
  }

  /** A desk that hangs would hold up all its jobs for ever: it is replaced. */
  look(): void {
    const pid = this.#desk?.pid;
    if (pid === undefined) return;
    this.#ask();
    const beat = { identity: 'desk', pid, beat: String(this.#answers) };
    if (this.#pulses.look([beat], this.#options.hungAfterMs()).length === 0) return;
    this.#options.log("the pool's desk hangs, and is killed", { desk: pid });
    this.#desk?.kill('SIGKILL');
  }

  /** Has these jobs make room where they run; those that do not run there any more are passed over. */
  async vacate(ids: readonly JobId[]): Promise<void> {
    const { agent, socket } = this.#options;
    const client = deskToAsk(socket, 'keeper');
    try {
      await client.ask({ t: 'steer', jobs: ids.map((id) => `${agent}.${formatJobId(id)}`), how: 'vacate' }, 'steered');
    } finally {
      await client.close();
    }
  }

  /** One question at a time: one that hangs answers none. */
  #ask(): void {
    if (this.#client) return;
    const { socket } = this.#options;
    const client = deskToAsk(socket, 'keeper');
    this.#client = client;
    const over = (answered: boolean) => {
      if (answered) this.#answers += 1;
      this.#client = undefined;
      void client.close();
    };
    client.ask({ t: 'capacity' }, 'capacity').then(
      () => over(true),
      () => over(false),
    );
  }

  #start(): void {
    const { agent, env, log } = this.#options;
    const main = fileURLToPath(new URL('../pool/desk-main.js', import.meta.url));
    const desk = spawn(process.execPath, ['--enable-source-maps', main, agent], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const startedAt = Date.now();
    let words = '';
    desk.stderr?.setEncoding('utf8').on('data', (text: string) => {
      words = (words + text).slice(-2000);
    });
    desk.once('error', (error) => {
      words = error.message;
    });
    desk.once('close', (code) => {
      this.#desk = undefined;
      this.#ended(code === 0, startedAt, words.trim());
    });
    this.#desk = desk;
    log("the pool's desk started", { desk: desk.pid });
  }

  #ended(clean: boolean, startedAt: number, words: string): void {
    if (!this.#wanted) return;
    const now = Date.now();
    this.#options.log("the pool's desk ended", { words });
    this.#trouble = troubleAfter(this.#trouble, clean, now - startedAt, now);
    const wait = clean ? 0 : restartDelay(this.#trouble?.failures ?? 1, this.#options.longestWaitMs) / 10;
    this.#again = setTimeout(() => {
      this.#again = undefined;
      this.want();
    }, wait);
  }
}
