/** Requests that are under way at once, at the beginning and at most. */
const FIRST = 4;
const MOST = 64;
/** Beyond twice the shortest answer's time: waiting in line begins, and is too long; milliseconds. */
const MORE_MS = 100;
const LESS_MS = 500;

/**
 * How many requests may be under way on a line: as many as it carries, and no more than it passes in about half a second, so
 * that what others ask on the same connection is not behind megabytes. Pure; times in milliseconds.
 */
export class Flight {
  #most = FIRST;
  #shortest = Number.POSITIVE_INFINITY;

  get most(): number {
    return this.#most;
  }

  /** A request was answered after so long. */
  answered(ms: number): void {
    this.#shortest = Math.min(this.#shortest, ms);
    if (ms < 2 * this.#shortest + MORE_MS) this.#most = Math.min(MOST, this.#most + 1);
    else if (ms > 2 * this.#shortest + LESS_MS) this.#most = Math.max(2, this.#most - 1);
  }
}
