import type { Learned } from '../queue/tables.ts';

/** A limit that an earlier process learned expires after this time, milliseconds. */
const FORGOTTEN_MS = 3_600_000;
/**
 * A batch system may still count a job after its end was reported; a freed place is not used for this time,
 * milliseconds.
 */
const SETTLE_MS = 2_000;
const SETTLE_MOST_MS = 30_000;
/** Time between two attempts to exceed the limit, milliseconds. */
const PROBE_MS = 30_000;
const PROBE_MOST_MS = 600_000;
/** Time until the next attempt after a successful one, milliseconds. */
const PROBE_AGAIN_MS = 5_000;

/**
 * How many of our jobs a site accepts, learned from its refusals. Such a refusal is not an error: the jobs wait in our
 * queue. The limit is probed gently upward: occasionally one job beyond it, more after a success, less often after each
 * refusal. Pure; `there` is how many of our jobs the site has, `now` Unix milliseconds.
 */
export class LearnedLimit {
  #learned: Learned | undefined;
  #settle = SETTLE_MS;
  #notBefore = 0;
  #freedAt = Number.NEGATIVE_INFINITY;
  #there = 0;
  #probeEvery = PROBE_MS;
  #probeAt = 0;
  #step = 1;

  constructor(learned: Learned | undefined, now: number) {
    if (learned === undefined || now - learned.at > FORGOTTEN_MS) return;
    this.#learned = learned;
    this.#probeAt = now + PROBE_MS;
  }

  get learned(): Learned | undefined {
    return this.#learned;
  }

  /** How many more jobs may be submitted now. */
  available(there: number, now: number): number {
    if (this.#learned === undefined) return Number.POSITIVE_INFINITY;
    this.#look(there, now);
    if (now < this.#notBefore) return 0;
    if (there < this.#learned.cap) return this.#learned.cap - there;
    return now >= this.#probeAt ? this.#step : 0;
  }

  /** Milliseconds after which there may be capacity. */
  waitMs(there: number, now: number): number {
    if (this.#learned === undefined) return 0;
    this.#look(there, now);
    const until = there < this.#learned.cap ? this.#notBefore : Math.max(this.#notBefore, this.#probeAt);
    // Bounded, in case the clock was set back.
    return Math.min(PROBE_MOST_MS, Math.max(0, until - now));
  }

  /** The site refused another job while it had `there`, with this message. */
  refused(there: number, message: string, now: number): void {
    const lags = this.#learned !== undefined && there < this.#learned.cap && now - this.#freedAt < 2 * SETTLE_MOST_MS;
    if (lags) {
      // A place that was freed recently is not free at the site yet.
      this.#settle = Math.min(SETTLE_MOST_MS, this.#settle * 2);
      this.#notBefore = now + this.#settle;
    } else {
      if (this.#learned !== undefined && there >= this.#learned.cap) {
        this.#probeEvery = Math.min(PROBE_MOST_MS, this.#probeEvery * 2);
      }
      this.#learned = { cap: there, message, at: now };
      this.#notBefore = now + this.#settle;
    }
    this.#step = 1;
    this.#probeAt = now + this.#probeEvery;
    this.#there = there;
  }

  /** The site accepted jobs; `there` includes them. */
  taken(there: number, now: number): void {
    this.#settle = Math.max(SETTLE_MS, this.#settle / 2);
    this.#there = there;
    if (this.#learned === undefined || there <= this.#learned.cap) return;
    this.#learned = { ...this.#learned, cap: there };
    this.#step *= 2;
    this.#probeEvery = PROBE_MS;
    this.#probeAt = now + PROBE_AGAIN_MS;
  }

  #look(there: number, now: number): void {
    if (there < this.#there) {
      this.#freedAt = now;
      this.#notBefore = Math.max(this.#notBefore, now + this.#settle);
    }
    this.#there = there;
  }
}
