import { endsProcess, narrowing } from '../gridmanager/faults.ts';
import { asError, GryphusError } from '../errors.ts';
import type { EventEntry } from '../queue/api.ts';
import { Pauses } from '../util/pauses.ts';
import type { Listener } from './listener.ts';

export interface PatienceOptions {
  /** Aborted when the Scheduler ends, also by this. */
  readonly stop: AbortController;
  readonly log: (message: string, facts?: object) => void;
  /** A fault that was contained: loudly. */
  readonly onFault: (message: string, error: Error) => void;
}

/** A queue that is away is asked again so often, milliseconds. */
const AGAIN_MS = 1000;
/** An event that a listener fails at is told to it so often. */
const TELLINGS = 3;

/**
 * What a Scheduler does when its work fails: a queue that is away is waited for; where another process has the work, it
 * ends; any other error is contained, said loudly, and that one work is left alone for a while.
 */
export class Patience {
  readonly #options: PatienceOptions;
  readonly #pauses = new Pauses();

  constructor(options: PatienceOptions) {
    this.#options = options;
  }

  /** Milliseconds to leave that work alone. */
  waitMs(what: string): number {
    return this.#pauses.waitMs(what, performance.now());
  }

  /** `undefined`: it failed, or the Scheduler ends. Rejects with what ends the Scheduler. `what`: as in `failed at …`. */
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

  /** As `with`, of work that is done at once and looks for its own pause: that of one job among many. */
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
   * An event that a listener cannot bear is passed over after a few tries, and that one alone: the others are heard. False
   * where the Scheduler ends before.
   */
  async tell(listener: Listener, entries: readonly EventEntry[]): Promise<boolean> {
    const { stop } = this.#options;
    const what = `telling ${listener.constructor.name} of events`;
    for (let turn = 1; turn <= TELLINGS; turn++) {
      const told = await this.with(what, async () => {
        await listener.hear(entries);
        return true;
      });
      if (told === true) return true;
      if (stop.signal.aborted) return false;
      await pause(this.waitMs(what), stop.signal);
    }
    const mayPass = (thrown: unknown) => !stop.signal.aborted && !endsProcess(thrown);
    const each = () => narrowing(entries, (some) => this.#waiting(() => listener.hear(some)), mayPass);
    const told = await this.with(`${what}, one by one`, each);
    if (!told) return false;
    for (const [{ id, event }, thrown] of told.failed) {
      const which = `the event ${id} (${event.type}), which is passed over`;
      this.failed(`telling ${listener.constructor.name} of ${which}`, thrown);
    }
    return true;
  }

  failed(what: string, thrown: unknown): void {
    const wait = this.#pauses.of(this.#pauses.failed(what, performance.now()));
    const { message } = asError(thrown);
    const again = `it tries again in ${Math.ceil(wait / 1000)} s`;
    this.#options.onFault(
      `Gryphus failed at ${what}, because of an internal error; ${again}: ${message}`,
      asError(thrown),
    );
  }

  /** A queue that is away is waited for. */
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
