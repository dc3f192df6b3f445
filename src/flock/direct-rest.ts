/** A way that failed sooner costs a job nothing, and is tried for the next one too, in milliseconds. */
const SLOW_MS = 1000;
/** How long a way that cost a job more is left alone, in milliseconds. */
const REST_MS = 60_000;

/**
 * Whether direct connections with a partner are worth a try. One that takes seconds to fail, such as at a port that takes connections
 * and does not answer, delays a single job a minute, and not each.
 */
export class DirectRest {
  readonly #clock: () => number;
  #until = Number.NEGATIVE_INFINITY;
  #why: string | undefined;
  #trying = false;

  /** `clock`: monotonic milliseconds. */
  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  /** Why it is left alone, until the next connection shows that it works again. */
  get why(): string | undefined {
    return this.#why;
  }

  /** Seconds until it is tried again. */
  get left(): number {
    return Math.max(0, (this.#until - this.#clock()) / 1000);
  }

  /** After the rest a single connection is tried, and the others wait for what becomes of it elsewhere. */
  get mayTry(): boolean {
    return this.#why === undefined || (this.left === 0 && !this.#trying);
  }

  /** Notes what becomes of a connection. */
  async watch<T>(connecting: Promise<T>): Promise<T> {
    const begun = this.#clock();
    this.#trying = true;
    try {
      const made = await connecting;
      this.#why = undefined;
      return made;
    } catch (thrown) {
      if (this.#why !== undefined || this.#clock() - begun > SLOW_MS) {
        this.#why = thrown instanceof Error ? thrown.message : String(thrown);
        this.#until = this.#clock() + REST_MS;
      }
      throw thrown;
    } finally {
      this.#trying = false;
    }
  }
}
