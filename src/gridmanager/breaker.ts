import type { OutOfUse } from '../queue/tables.ts';

/** Number of consecutive failures that takes a site out of use; one poll adds at most MOST_AT_ONCE. */
const MOST = 6;
const MOST_AT_ONCE = 3;
/** How long the site is then left alone, milliseconds; doubled each time a probe fails. */
const REST_MS = 60_000;
const REST_MOST_MS = 1_800_000;

/**
 * A circuit breaker. A site that keeps failing jobs (its nodes die, jobs vanish or are lost) is taken out of use. After
 * a pause one job is sent as a probe, and another after each further pause, until a job ends there by itself. Pure;
 * `now`: Unix milliseconds.
 */
export class Breaker {
  #failures = 0;
  #rest = REST_MS;
  /** When the next probe may be sent; undefined: the site is in use. */
  #probeAt: number | undefined;
  #probing = false;
  #message = '';

  /** `known`: the state left by an earlier process. */
  constructor(known?: OutOfUse) {
    if (known === undefined) return;
    this.#failures = MOST;
    this.#probeAt = known.probeAt;
    this.#probing = known.probing;
    this.#message = known.message;
  }

  /** Undefined if the site is in use. */
  get open(): OutOfUse | undefined {
    if (this.#probeAt === undefined) return undefined;
    return { message: this.#message, probeAt: this.#probeAt, probing: this.#probing };
  }

  /** How many jobs may be sent there now. */
  available(now: number): number {
    if (this.#probeAt === undefined) return Number.POSITIVE_INFINITY;
    return now >= this.#probeAt ? 1 : 0;
  }

  waitMs(now: number): number {
    // Bounded, in case the clock was set back.
    return this.#probeAt === undefined ? 0 : Math.min(REST_MOST_MS, Math.max(0, this.#probeAt - now));
  }

  /** Jobs were sent; if the site is out of use, they are a probe. */
  sent(now: number): void {
    if (this.#probeAt === undefined) return;
    this.#probing = true;
    this.#probeAt = now + this.#rest;
  }

  /** The site failed jobs. Returns true if this takes it out of use. */
  failed(jobs: number, message: string, now: number): boolean {
    this.#failures += Math.min(jobs, MOST_AT_ONCE);
    if (this.#failures < MOST) return false;
    const news = this.#probeAt === undefined;
    if (!news && !this.#probing) return false;
    if (!news) this.#rest = Math.min(REST_MOST_MS, this.#rest * 2);
    this.#probing = false;
    this.#message = message;
    this.#probeAt = now + this.#rest;
    return news;
  }

  /** A job ended there by itself. Returns true if this brings the site back into use. */
  succeeded(): boolean {
    const news = this.#probeAt !== undefined;
    this.#failures = 0;
    this.#rest = REST_MS;
    this.#probeAt = undefined;
    this.#probing = false;
    return news;
  }
}
