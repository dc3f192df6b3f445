import { setMaxListeners } from 'node:events';
import { endsProcess, narrowing } from '../job/faults.ts';
import { asError, GryphusError } from '../errors.ts';
import type { EventEntry } from '../queue/api.ts';
import { Pauses } from '../util/pauses.ts';
import type { Listener } from './listener.ts';

export interface PatienceOptions {
  /** Aborted when the Scheduler ends; Patience also aborts it to end the Scheduler. */
  readonly stop: AbortController;
  readonly log: (message: string, facts?: object) => void;
  /** Reports an unexpected error that was contained. */
  readonly onFault: (message: string, error: Error) => void;
}

/** How often an unavailable queue is retried, milliseconds. */
const AGAIN_MS = 1000;
/** How often a batch of events is delivered to a listener that fails. */
const TELLINGS = 3;

/**
 * How the Scheduler handles errors: it waits for an unavailable queue; it ends if another process has taken over; any
 * other error is contained and reported, and the failing task is paused for a while.
 */
export class Patience {
  readonly #options: PatienceOptions;
  readonly #pauses = new Pauses();

  constructor(options: PatienceOptions) {
    this.#options = options;
    // Each task may wait at once; without this, Node warns of eleven.
    setMaxListeners(0, options.stop.signal);
  }

  /** Milliseconds until the task may be tried again. */
  waitMs(what: string): number {
    return this.#pauses.waitMs(what, performance.now());
  }

  /**
   * Runs the task; `undefined` if it failed or the Scheduler is ending. Rejects with errors that end the Scheduler.
   * `what`: completes the phrase `failed while …`.
   */
  async with<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      const done = await this.#waiting(work);
      this.#pauses.passed(what);
      return done;
    } catch (thrown) {
      if (this.#options.stop.signal.aborted) return undefined;
      if (endsProcess(thrown)) {
        this.#options.stop.abort();
        throw thrown;
      }
      this.failed(what, thrown);
      return undefined;
    }
  }

  /** Like `with`, for synchronous work that checks its own pause: that of one job among many. */
  attempt<T>(what: string, work: () => T): T | undefined {
    if (this.waitMs(what) > 0) return undefined;
    try {
      const done = work();
      this.#pauses.passed(what);
      return done;
    } catch (thrown) {
      if (endsProcess(thrown)) throw thrown;
      this.failed(what, thrown);
      return undefined;
    }
  }

  /**
   * Delivers events to a listener. An event that the listener cannot handle is skipped after a few attempts, without
   * affecting the others. Returns false if the Scheduler ends first.
   */
  async tell(listener: Listener, entries: readonly EventEntry[]): Promise<boolean> {
    const { stop } = this.#options;
    const what = `telling ${listener.constructor.name} of events`;
    for (let turn = 1; turn <= TELLINGS; turn++) {
      const delivered = await this.with(what, async () => {
        await listener.hear(entries);
        return true;
      });
      if (delivered === true) return true;
      if (stop.signal.aborted) return false;
      await pause(this.waitMs(what), stop.signal);
    }
    const mayPass = (thrown: unknown) => !stop.signal.aborted && !endsProcess(thrown);
    const each = () => narrowing(entries, (some) => this.#waiting(() => listener.hear(some)), mayPass);
    const delivered = await this.with(`${what}, one by one`, each);
    if (!delivered) return false;
    for (const [{ id, event }, thrown] of delivered.failed) {
      const which = `the event ${id} (${event.type}), which is skipped`;
      this.failed(`telling ${listener.constructor.name} of ${which}`, thrown);
    }
    return true;
  }

  failed(what: string, thrown: unknown): void {
    const wait = this.#pauses.of(this.#pauses.failed(what, performance.now()));
    const { message } = asError(thrown);
    const again = `it retries in ${Math.ceil(wait / 1000)} s`;
    this.#options.onFault(
      `Gryphus failed while ${what}, because of an internal error; ${again}: ${message}`,
      asError(thrown),
    );
  }

  /** Waits while the queue is unavailable. */
  async #waiting<T>(work: () => Promise<T>): Promise<T> {
    const { stop, log } = this.#options;
    for (;;) {
      try {
        return await work();
      } catch (thrown) {
        const away = thrown instanceof GryphusError && thrown.retry === 'later';
        if (!away || stop.signal.aborted) throw thrown;
        log('trying again', { error: thrown.message });
        await pause(AGAIN_MS, stop.signal);
      }
    }
  }
}

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}
