/** So much failure in a row takes a site out of use; what one look at it brings counts for little more than one job. */
const MOST = 6;
const MOST_AT_ONCE = 3;
/** So long it is left alone then, milliseconds; twice as long each time that a probe fails. */
const REST_MS = 60_000;
const REST_MOST_MS = 1_800_000;

export interface OutOfUse {
  readonly message: string;
  /** When the next job may go there to see; Unix milliseconds. */
  readonly probeAt: number;
  /** One is there, and nothing was heard of it yet. */
  readonly probing: boolean;
}

/**
 * A circuit breaker. A site that fails jobs again and again (its nodes die, jobs vanish or are lost) is taken out of use;
 * after a while one job is sent to see, and one more after each further while, until a job ends there by itself. Pure;
 * `now`: Unix milliseconds.
 */
export class Breaker {
  #failures = 0;
  #rest = REST_MS;
  /** When the next probe may go; undefined: the site is in use. */
  #probeAt: number | undefined;
  #probing = false;
  #words = '';

  /** `known`: how an earlier process left it. */
  constructor(known?: OutOfUse) {
    if (known === undefined) return;
    this.#failures = MOST;
    this.#probeAt = known.probeAt;
    this.#probing = known.probing;
    this.#words = known.message;
  }

  /** Undefined where the site is in use. */
  get open(): OutOfUse | undefined {
    if (this.#probeAt === undefined) return undefined;
    return { message: this.#words, probeAt: this.#probeAt, probing: this.#probing };
  }

  /** How many jobs may go there now. */
  room(now: number): number {
    if (this.#probeAt === undefined) return Number.POSITIVE_INFINITY;
    return now >= this.#probeAt ? 1 : 0;
  }

  waitMs(now: number): number {
    // A clock that was set back must not make it long.
    return this.#probeAt === undefined ? 0 : Math.min(REST_MOST_MS, Math.max(0, this.#probeAt - now));
  }

  /** A probe went there. */
  sent(now: number): void {
    if (this.#probeAt === undefined) return;
    this.#probing = true;
    this.#probeAt = now + this.#rest;
  }

  /** The site failed jobs. True when it is taken out of use for it. */
  failed(jobs: number, message: string, now: number): boolean {
    this.#failures += Math.min(jobs, MOST_AT_ONCE);
    if (this.#failures < MOST) return false;
    const news = this.#probeAt === undefined;
    if (!news && !this.#probing) return false;
    if (!news) this.#rest = Math.min(REST_MOST_MS, this.#rest * 2);
    this.#probing = false;
    this.#words = message;
    this.#probeAt = now + this.#rest;
    return news;
  }

  /** A job ended there by itself. True when that brings the site back into use. */
  succeeded(): boolean {
    const news = this.#probeAt !== undefined;
    this.#failures = 0;
    this.#rest = REST_MS;
    this.#probeAt = undefined;
    this.#probing = false;
    return news;
  }
}
