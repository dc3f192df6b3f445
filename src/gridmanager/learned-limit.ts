/** What a refusal taught of how many of our jobs a site takes. */
export interface Learned {
  readonly cap: number;
  /** The site's own words. */
  readonly message: string;
  /** Unix milliseconds of the refusal. */
  readonly at: number;
}

/** After so long nobody believes what an earlier process had learned, milliseconds. */
const FORGOTTEN_MS = 3_600_000;
/** A batch system counts a job for a while after we heard of its end; so long a freed place is left alone. */
const SETTLE_MS = 2_000;
const SETTLE_MOST_MS = 30_000;
/** Between two tries to go beyond the limit. */
const PROBE_MS = 30_000;
const PROBE_MOST_MS = 600_000;
/** After one that was taken. */
const PROBE_AGAIN_MS = 5_000;

/**
 * How many jobs a site takes of us, learned from its refusals. Such a refusal is no failure: the jobs wait at home. The
 * limit is probed gently upward: one job beyond it now and then, more once that was taken, rarer each time that it was
 * refused. Pure; `there` is how many jobs of ours the site has, `now` Unix milliseconds.
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

  /** How many more may be submitted now. */
  room(there: number, now: number): number {
    if (this.#learned === undefined) return Number.POSITIVE_INFINITY;
    this.#look(there, now);
    if (now < this.#notBefore) return 0;
    if (there < this.#learned.cap) return this.#learned.cap - there;
    return now >= this.#probeAt ? this.#step : 0;
  }

  /** Milliseconds after which there may be room. */
  waitMs(there: number, now: number): number {
    if (this.#learned === undefined) return 0;
    this.#look(there, now);
    const until = there < this.#learned.cap ? this.#notBefore : Math.max(this.#notBefore, this.#probeAt);
    // A clock that was set back must not make it long.
    return Math.min(PROBE_MOST_MS, Math.max(0, until - now));
  }

  /** It refused one more than `there`, in these words. */
  refused(there: number, message: string, now: number): void {
    const lags = this.#learned !== undefined && there < this.#learned.cap && now - this.#freedAt < 2 * SETTLE_MOST_MS;
    if (lags) {
      // A place that was freed just now is not free there yet.
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

  /** It took jobs; `there` counts them. */
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
