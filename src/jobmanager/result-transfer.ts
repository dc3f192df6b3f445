import { setTimeout as delay } from 'node:timers/promises';
import { type AttemptKey, formatJobId, parseAttemptKey } from '../job/ids.ts';
import type { FetchOutcome, Sending } from '../site/contract.ts';
import { isOurDisk } from '../staging/place.ts';

/** How many attempts' large results come at once, so that a small one need not wait for a huge one. */
const AT_ONCE = 3;
/** The interval of progress reports, in milliseconds. */
const TELL_MS = 1000;

export interface BringOptions {
  readonly signal: AbortSignal;
  /** Called with the current file, by the job's name for it, and its bytes. */
  readonly onProgress: (name: string, done: number, total: number) => void;
}

export interface ResultTransferOptions {
  /** How long a caller waits for what it needs, in milliseconds; the transfer continues afterwards. */
  readonly patience: number;
  /** Called with the current transfers and their progress. */
  readonly tell: (all: readonly Sending[]) => void;
}

type End = { readonly outcome: FetchOutcome } | { readonly thrown: unknown };

interface Coming {
  readonly stop: AbortController;
  now: Sending | undefined;
  /** Undefined while the transfer runs. */
  end: End | undefined;
  readonly over: Promise<void>;
}

/** Large results on their way home from one site, those of a few attempts at a time, while other requests continue. */
export class ResultTransfer {
  readonly #options: ResultTransferOptions;
  readonly #coming = new Map<AttemptKey, Coming>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ResultTransferOptions) {
    this.#options = options;
  }

  has(key: AttemptKey): boolean {
    return this.#coming.has(key);
  }

  begin(key: AttemptKey, bring: (options: BringOptions) => Promise<FetchOutcome>): void {
    const stop = new AbortController();
    const over = this.#bring(key, stop.signal, bring);
    this.#coming.set(key, { stop, over, now: undefined, end: undefined });
  }

  /** Waits for these, but no longer than a caller's patience. */
  async wait(keys: readonly AttemptKey[]): Promise<void> {
    const over = Promise.all(keys.flatMap((key) => this.#coming.get(key)?.over ?? []));
    if (!Number.isFinite(this.#options.patience)) return void (await over);
    const enough = new AbortController();
    await Promise.race([
      over,
      delay(this.#options.patience, undefined, { signal: enough.signal }).catch(() => undefined),
    ]);
    enough.abort();
  }

  /**
   * The outcome of each finished transfer, reported once; running ones are left out. Throws what stopped a transfer.
   * That our own disk is full is thrown until the attempt is requested alone: a caller that requested several then
   * finds out which one it was.
   */
  take(keys: readonly AttemptKey[], alone: boolean): Map<AttemptKey, FetchOutcome> {
    const outcomes = new Map<AttemptKey, FetchOutcome>();
    for (const key of keys) {
      const end = this.#coming.get(key)?.end;
      if (end === undefined) continue;
      if ('outcome' in end) outcomes.set(key, end.outcome);
      else {
        if (alone || !isOurDisk(end.thrown)) this.#coming.delete(key);
        throw end.thrown;
      }
    }
    for (const key of outcomes.keys()) this.#coming.delete(key);
    return outcomes;
  }

  /** Stops these transfers; resolves when nothing more of them is written. */
  async drop(keys: readonly AttemptKey[]): Promise<void> {
    const dropped = keys.flatMap((key) => this.#coming.get(key) ?? []);
    for (const { stop } of dropped) stop.abort();
    await Promise.all(dropped.map(({ over }) => over));
    for (const key of keys) this.#coming.delete(key);
    if (dropped.length > 0) this.#tell();
  }

  async close(): Promise<void> {
    await this.drop([...this.#coming.keys()]);
  }

  async #bring(key: AttemptKey, signal: AbortSignal, bring: (options: BringOptions) => Promise<FetchOutcome>) {
    // Lets the caller add its entry before anything can finish.
    await new Promise<void>((go) => setImmediate(go));
    const since = Date.now();
    let first: { readonly path: string; readonly done: number; readonly since: number } | undefined;
    let end: End;
    await this.#place();
    try {
      signal.throwIfAborted();
      const job = parseAttemptKey(key);
      const of = job ? ` of ${formatJobId(job)}` : '';
      const onProgress = (name: string, done: number, total: number): void => {
        const path = `${name}${of}`;
        if (first?.path !== path) first = { path, done, since: first === undefined ? since : Date.now() };
        this.#progress(key, { path, bytes: total, done, resumed: first.done, since: first.since });
      };
      end = { outcome: await bring({ signal, onProgress }) };
    } catch (thrown) {
      end = { thrown };
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
    const coming = this.#coming.get(key);
    if (coming) coming.end = end;
    this.#tell();
  }

  async #place(): Promise<void> {
    if (this.#running >= AT_ONCE) await new Promise<void>((go) => this.#waiting.push(go));
    this.#running += 1;
  }

  #progress(key: AttemptKey, now: Sending): void {
    const coming = this.#coming.get(key);
    if (!coming) return;
    coming.now = now;
    if (performance.now() - this.#reportedAt >= TELL_MS) this.#tell();
  }

  #tell(): void {
    this.#reportedAt = performance.now();
    this.#options.tell([...this.#coming.values()].flatMap(({ now, end }) => (now && end === undefined ? [now] : [])));
  }
}
