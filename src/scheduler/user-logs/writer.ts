import { type ChildProcess, fork } from 'node:child_process';
import type { Piece } from './append-once.ts';
import { ANSWER, type WriterAnswer, type WriterAsk } from './writer-messages.ts';

type Task = ({ readonly does: 'append' } & Piece) | { readonly does: 'size'; readonly path: string };

/** Accesses users' logs. Both calls may be repeated. */
export interface LogWriter {
  size(path: string, deadline?: number): Promise<number>;
  append(piece: Piece, deadline?: number): Promise<void>;
  close(): void;
}

/** The log's file system does not answer. */
export class HungLog extends Error {
  override readonly name = 'HungLog';
}

/** The deadline passed before it was tried. */
export class NotTried extends Error {
  override readonly name = 'NotTried';
}

interface Work {
  readonly task: Task;
  /** By the clock of `performance.now()`. */
  readonly deadline: number;
  readonly resolve: (answer: WriterAnswer) => void;
  readonly reject: (error: Error) => void;
  deaths: number;
  /** By the clock of `performance.now()`. */
  begun: number;
  timer?: NodeJS.Timeout;
}

export interface WriterOptions {
  /** The compiled `writer-main`. */
  readonly program: string;
  /** Time limit of one call, milliseconds. */
  readonly limitMs: number;
  readonly onStart?: (pid: number) => void;
}

/** Concurrent calls; each takes one thread of the process. */
const AT_ONCE = 16;
/** How often a task may lose its process before it fails. */
const DEATHS = 3;
/**
 * A killed process exits sooner than this, unless it is stuck in the kernel, and then none of its code runs again.
 * Milliseconds.
 */
const GONE_MS = 2000;

/** Accesses users' logs from a separate process, which is started on demand and replaced when it dies or hangs. */
export class WriterProcess implements LogWriter {
  readonly #options: WriterOptions;
  readonly #waiting: Work[] = [];
  readonly #running = new Map<number, Work>();
  #child: ChildProcess | undefined;
  #ending = false;
  #closed = false;
  #last = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  async size(path: string, deadline = Number.POSITIVE_INFINITY): Promise<number> {
    return (await this.#do({ does: 'size', path }, deadline)).size ?? 0;
  }

  async append(piece: Piece, deadline = Number.POSITIVE_INFINITY): Promise<void> {
    await this.#do({ does: 'append', ...piece }, deadline);
  }

  close(): void {
    this.#closed = true;
    this.#child?.kill('SIGKILL');
    for (const work of this.#waiting.splice(0)) work.reject(new NotTried('the agent is shutting down'));
  }

  #do(task: Task, deadline: number): Promise<WriterAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ task, deadline, resolve, reject, deaths: 0, begun: 0 });
      this.#pump();
    });
  }

  #pump(): void {
    while (!this.#ending && !this.#closed && this.#running.size < AT_ONCE) {
      const work = this.#waiting.shift();
      if (!work) return;
      if (performance.now() > work.deadline) work.reject(new NotTried('other logs took all the time'));
      else this.#send(work);
    }
  }

  #send(work: Work): void {
    const id = ++this.#last;
    this.#child ??= this.#start();
    this.#running.set(id, work);
    work.begun = performance.now();
    work.timer = setTimeout(() => this.#hang(), this.#options.limitMs);
    this.#child.send({ id, ...work.task } satisfies WriterAsk, () => undefined);
  }

  #start(): ChildProcess {
    const child = fork(this.#options.program, [], {
      env: { ...process.env, UV_THREADPOOL_SIZE: String(AT_ONCE) },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    if (child.pid !== undefined) this.#options.onStart?.(child.pid);
    child.on('message', (message) => this.#answered(ANSWER.parse(message)));
    child.once('error', () => this.#gone(child));
    child.once('exit', () => this.#gone(child));
    // Do not keep the Scheduler alive for it.
    child.unref();
    child.channel?.unref();
    return child;
  }

  #answered(answer: WriterAnswer): void {
    const work = this.#running.get(answer.id);
    if (!work) return;
    this.#running.delete(answer.id);
    clearTimeout(work.timer);
    if (answer.error === undefined) work.resolve(answer);
    else work.reject(new Error(answer.error));
    this.#pump();
  }

  /**
   * Kills the process, and with it the calls that hang: if one were to finish later, its effect could not be told from
   * that of a retry.
   */
  #hang(): void {
    const { limitMs } = this.#options;
    const long = performance.now() - limitMs / 2;
    for (const [id, work] of this.#running) {
      if (work.begun > long) continue;
      this.#running.delete(id);
      clearTimeout(work.timer);
      work.reject(new HungLog(`its file system does not answer (${limitMs / 1000} s)`));
    }
    const child = this.#child;
    if (!child || this.#ending) return;
    this.#ending = true;
    child.kill('SIGKILL');
    setTimeout(() => this.#gone(child), GONE_MS).unref();
  }

  #gone(child: ChildProcess): void {
    if (child !== this.#child) return;
    this.#child = undefined;
    this.#ending = false;
    const cut = [...this.#running.values()];
    this.#running.clear();
    for (const work of cut.reverse()) {
      clearTimeout(work.timer);
      work.deaths += 1;
      if (this.#closed) work.reject(new NotTried('the agent is shutting down'));
      else if (work.deaths >= DEATHS) work.reject(new Error('the process that writes it died'));
      else this.#waiting.unshift(work);
    }
    this.#pump();
  }
}
