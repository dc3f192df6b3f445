/** The number of concurrent requests at the start. */
const FIRST = 4;
/** Milliseconds beyond twice the shortest response time: below the first, more requests; above the second, fewer. */
const MORE_MS = 100;
const LESS_MS = 500;

/**
 * How many requests may be in progress on a line: as many as it can carry, but no more than it handles in about half a
 * second, so that other traffic on the connection does not wait behind megabytes. Pure; times are in milliseconds.
 */
export class Flight {
  readonly #limit: number;
  #most = FIRST;
  #shortest = Number.POSITIVE_INFINITY;

  /** `limit`: never more than so many. */
  constructor(limit = 64) {
    this.#limit = limit;
  }

  get most(): number {
    return this.#most;
  }

  /** Records a response time. */
  answered(ms: number): void {
    this.#shortest = Math.min(this.#shortest, ms);
    if (ms < 2 * this.#shortest + MORE_MS) this.#most = Math.min(this.#limit, this.#most + 1);
    else if (ms > 2 * this.#shortest + LESS_MS) this.#most = Math.max(2, this.#most - 1);
  }
}
