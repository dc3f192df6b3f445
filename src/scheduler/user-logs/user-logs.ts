import { setTimeout as sleep } from 'node:timers/promises';
import { asError } from '../../errors.ts';
import type { Accepted, Addition, LogJournal } from './journal.ts';
import { isIn, placeOf } from './places.ts';
import { HungLog, type LogWriter, NotTried } from './writer.ts';

/** Text for each log, in the order of events. */
export interface LogBatch extends Accepted {
  readonly texts: ReadonlyMap<string, string>;
}

/** A log that currently cannot be written. */
export interface OwedLog {
  readonly path: string;
  /** Unix milliseconds. */
  readonly since: number;
  readonly error: string;
}

export interface UserLogsOptions {
  readonly journal: LogJournal;
  readonly writer: LogWriter;
  /** Pending text is dropped after this time, milliseconds. */
  readonly keepForMs: () => number;
  readonly onTrouble: (path: string, error: string) => void;
  /** Called when the list of pending logs has changed. */
  readonly onOwed: () => void;
}

interface Trouble {
  readonly error: string;
  readonly tries: number;
  /** Unix milliseconds. */
  readonly nextAt: number;
}

/** A file system or directory that does not answer. */
interface HungPlace {
  readonly waitMs: number;
  /** Nothing is tried there until then, Unix milliseconds. */
  readonly until: number;
}

/** How long a batch waits for its slowest log, milliseconds. */
const GRACE_MS = 2000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Maximum number of logs retried in one round; with very many failing logs, the longest wait is EACH_MS for each. */
const IN_A_ROUND = 200;
const EACH_MS = 5;
const BEHIND = 'its file system does not answer';
/** Maximum number of failing logs that are reported individually. */
const MOST_REPORTED = 100;

/**
 * Appends to users' logs, each event exactly once: a batch is written to the journal, with the sizes of its logs,
 * before it is written to any log. Text that cannot be written now, for whatever reason, stays in the journal and is
 * retried with increasing waits, also by the next Scheduler. No log delays another.
 */
export class UserLogs {
  readonly #options: UserLogsOptions;
  readonly #troubles = new Map<string, Trouble>();
  readonly #hung = new Map<string, HungPlace>();
  /** Logs being written now. */
  readonly #busy = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: UserLogsOptions) {
    this.#options = options;
    this.#arm(0);
  }

  /** The last event of the batch that began with `from`, if that batch was accepted: it must not be written again. */
  accepted(from: string): string | undefined {
    const { accepted } = this.#options.journal;
    return accepted?.from === from ? accepted.last : undefined;
  }

  /** The logs that cannot be written now, longest waiting first. */
  owed(): { readonly count: number; readonly logs: readonly OwedLog[] } {
    const { journal } = this.#options;
    const logs: OwedLog[] = [];
    for (const path of journal.owed()) {
      if (logs.length >= MOST_REPORTED) break;
      const error = this.#troubles.get(path)?.error;
      if (error !== undefined) logs.push({ path, since: journal.since(path) ?? Date.now(), error });
    }
    return { count: this.#troubles.size, logs };
  }

  /**
   * Resolves when the batch is in the journal and has been written, except to logs that are slow or currently cannot be
   * written.
   */
  async append({ from, last, texts }: LogBatch): Promise<void> {
    const { journal } = this.#options;
    // A log is written by one call at a time: a second one would not find the text of the first, and write it again.
    const free = [...texts.keys()].filter((path) => !journal.owes(path) && !this.#busy.has(path) && !this.#hangs(path));
    const sizes = await this.#sizes(free);
    for (const path of sizes.keys()) this.#busy.add(path);
    const additions = [...texts].map(([path, text]): Addition => {
      const size = sizes.get(path);
      return { path, text, ...(size === undefined ? {} : { size }) };
    });
    try {
      await journal.accept({ from, last }, additions, Date.now()).catch((thrown: unknown) => {
        for (const path of sizes.keys()) this.#busy.delete(path);
        throw thrown;
      });
      await this.#write(additions);
    } finally {
      this.#arm(FIRST_WAIT_MS);
    }
  }

  /** The sizes of the logs that answer in time; the others are written later. */
  async #sizes(paths: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const sizes = new Map<string, number>();
    const until = performance.now() + GRACE_MS;
    const asked = each(paths, async (path) => {
      try {
        sizes.set(path, await this.#options.writer.size(path, until));
      } catch (thrown) {
        this.#trouble(path, thrown);
      }
    });
    await soon(asked);
    return new Map(sizes);
  }

  /** Writes that take longer continue in the background; new text for those logs waits in the journal. */
  async #write(additions: readonly Addition[]): Promise<void> {
    const { writer } = this.#options;
    let inTime: string[] | undefined = [];
    const writing = each(additions, async ({ path, text, size }) => {
      if (size === undefined) return;
      try {
        await writer.append({ path, text, size });
        if (inTime) inTime.push(path);
        else await this.#written([path]);
      } catch (thrown) {
        this.#trouble(path, thrown);
        this.#busy.delete(path);
      }
    });
    await soon(writing);
    const written = inTime;
    inTime = undefined;
    await this.#written(written);
  }

  async #written(paths: readonly string[]): Promise<void> {
    await this.#options.journal.done(new Map(paths.map((path) => [path, 1])));
    for (const path of paths) this.#busy.delete(path);
  }

  /** Does not wait for any file system; the next Scheduler finds out whether a pending write was done. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#options.writer.close();
    await this.#options.journal.close();
  }

  /** Records whether the file system answers. Returns the error message. */
  #failed(path: string, thrown: unknown): string {
    if (thrown instanceof HungLog) {
      const place = placeOf(path);
      const waitMs = Math.min((this.#hung.get(place)?.waitMs ?? FIRST_WAIT_MS) * 2, LONGEST_WAIT_MS);
      this.#hung.set(place, { waitMs, until: Date.now() + waitMs });
    } else if (!(thrown instanceof NotTried)) {
      this.#answers(path);
    }
    return asError(thrown).message;
  }

  #answers(path: string): void {
    for (const place of this.#hung.keys()) if (isIn(path, place)) this.#hung.delete(place);
  }

  /** A log of this place will be retried soon; until then, no other is tried. */
  #hangs(path: string): boolean {
    const since = Date.now() - LONGEST_WAIT_MS;
    return [...this.#hung].some(([place, { until }]) => until > since && isIn(path, place));
  }

  #trouble(path: string, thrown: unknown): void {
    const error = this.#failed(path, thrown);
    const known = this.#troubles.get(path);
    // It was not tried for lack of time, which says nothing about the log.
    if (this.#closed || thrown instanceof NotTried) return;
    const tries = (known?.tries ?? 0) + 1;
    if (known?.error !== error && this.#troubles.size < MOST_REPORTED) this.#options.onTrouble(path, error);
    const longest = Math.max(LONGEST_WAIT_MS, this.#troubles.size * EACH_MS);
    const wait = Math.min(FIRST_WAIT_MS * 2 ** Math.min(tries - 1, 16), longest);
    this.#troubles.set(path, { error, tries, nextAt: Date.now() + wait });
    this.#arm(wait);
    this.#options.onOwed();
  }

  #arm(ms: number): void {
    if (this.#closed || this.#timer || this.#options.journal.isEmpty) return;
    this.#timer = setTimeout(() => {
      void this.#round()
        .catch((error: unknown) => {
          // The journal's disk is full: the text stays pending.
          if (!this.#closed) this.#options.onTrouble('', asError(error).message);
        })
        .finally(() => {
          this.#timer = undefined;
          this.#arm(FIRST_WAIT_MS);
        });
    }, ms).unref();
  }

  /** Retries the logs that are due; in a place that did not answer, only one of them. */
  async #round(): Promise<void> {
    const { journal } = this.#options;
    const now = Date.now();
    const asked = new Set<string>();
    const due: string[] = [];
    for (const path of journal.owed()) {
      if (due.length >= IN_A_ROUND) break;
      if (this.#busy.has(path) || (this.#troubles.get(path)?.nextAt ?? 0) > now) continue;
      const place = [...this.#hung.keys()].find((one) => isIn(path, one));
      const waits = place !== undefined && (asked.has(place) || (this.#hung.get(place)?.until ?? 0) > now);
      if (waits && !this.#troubles.has(path)) this.#troubles.set(path, { error: BEHIND, tries: 0, nextAt: 0 });
      if (place !== undefined) asked.add(place);
      if (!waits) due.push(path);
    }
    await each(due, (path) => this.#retry(path));
    this.#options.onOwed();
  }

  async #retry(path: string): Promise<void> {
    this.#busy.add(path);
    try {
      await this.#settle(path);
      this.#troubles.delete(path);
      this.#answers(path);
    } catch (thrown) {
      this.#trouble(path, thrown);
      await this.#giveUp(path);
    } finally {
      this.#busy.delete(path);
    }
  }

  async #settle(path: string): Promise<void> {
    const { journal, writer } = this.#options;
    while (journal.owes(path)) {
      const { text, count, size: begun } = await journal.next(path);
      const size = begun ?? (await writer.size(path));
      if (begun === undefined) await journal.attempt(path, count, size);
      await writer.append({ path, text, size });
      await journal.done(new Map([[path, count]]));
    }
  }

  async #giveUp(path: string): Promise<void> {
    const { journal, keepForMs, onTrouble } = this.#options;
    const since = journal.since(path);
    if (since === undefined || Date.now() - since < keepForMs()) return;
    onTrouble(path, 'its pending events are discarded: it could not be written for longer than history.keep_for');
    await journal.done(new Map([[path, Number.POSITIVE_INFINITY]]));
    this.#troubles.delete(path);
  }
}

async function soon(work: Promise<unknown>): Promise<void> {
  const grace = new AbortController();
  await Promise.race([work, sleep(GRACE_MS, undefined, { signal: grace.signal }).catch(() => undefined)]);
  grace.abort();
}

async function each<T>(items: readonly T[], use: (item: T) => Promise<unknown>): Promise<void> {
  await Promise.all(items.map(use));
}
