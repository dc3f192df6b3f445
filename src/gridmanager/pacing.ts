/** A site's limits and polling times, as configured or learned. Times in milliseconds. */
export interface Backoff {
  /** Maximum number of our jobs in the site's queue, including running ones. */
  readonly maxJobs: number;
  readonly submitsPerMinute: number;
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
}

/**
 * Time until the next poll, milliseconds: the minimum after a change, otherwise 1.5 times the previous time, within the
 * site's limits.
 */
export function nextPoll(
  previousMs: number,
  changed: boolean,
  backoff: Pick<Backoff, 'pollMinMs' | 'pollMaxMs'>,
): number {
  if (changed) return backoff.pollMinMs;
  return Math.min(backoff.pollMaxMs, Math.max(backoff.pollMinMs, Math.round(previousMs * 1.5)));
}

/** Milliseconds. */
export interface RetryLimits {
  readonly min: number;
  readonly max: number;
}

/**
 * How long to leave a failing site alone, milliseconds: `min`, doubled after each failure up to `max`, varied by
 * ±12.5%.
 */
export function backOff(failures: number, random: number, { min, max }: RetryLimits): number {
  const base = Math.min(max, min * 2 ** Math.min(failures - 1, 30));
  return Math.round(base * (0.875 + random / 4));
}

/** Submits allowed now: a token bucket that refills evenly and holds at most one minute's worth. */
export class SubmitBudget {
  #tokens: number;
  #at: number;
  readonly #perMinute: number;

  constructor(perMinute: number, now: number) {
    this.#perMinute = perMinute;
    this.#tokens = perMinute;
    this.#at = now;
  }

  available(now: number): number {
    const gained = (Math.max(0, now - this.#at) / 60_000) * this.#perMinute;
    this.#tokens = Math.min(this.#perMinute, this.#tokens + gained);
    this.#at = now;
    return Math.floor(this.#tokens);
  }

  spend(count: number): void {
    this.#tokens -= count;
  }

  /** Milliseconds until one more is allowed. */
  waitMs(now: number): number {
    return this.available(now) >= 1 ? 0 : Math.ceil(((1 - this.#tokens) / this.#perMinute) * 60_000);
  }
}
