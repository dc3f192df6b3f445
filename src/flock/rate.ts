/** A bucket of tokens that fills at a constant rate. */
export class Rate {
  readonly #perSecond: number;
  readonly #most: number;
  readonly #clock: () => number;
  #left: number;
  #at: number;

  /** `clock`: monotonic milliseconds. */
  constructor(perSecond: number, most: number, clock: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#most = most;
    this.#clock = clock;
    this.#left = most;
    this.#at = clock();
  }

  /** False if there are not so many left; then none is taken. */
  take(many: number): boolean {
    const now = this.#clock();
    this.#left = Math.min(this.#most, this.#left + ((now - this.#at) / 1000) * this.#perSecond);
    this.#at = now;
    if (this.#left < many) return false;
    this.#left -= many;
    return true;
  }
}

const FIRST_MS = 60_000;
const LONGEST_MS = 3_600_000;

/** Whether a partner that misbehaved is left alone for a while: longer each time, forgiven after a day without. */
export class Bench {
  readonly #clock: () => number;
  #times = 0;
  #until = Number.NEGATIVE_INFINITY;
  #shutUntil = Number.NEGATIVE_INFINITY;
  /** The latest reason. */
  why = '';

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  /** `shut`: nothing is heard of it meanwhile; otherwise what runs there goes on. */
  strike(why: string, shut = true): void {
    const now = this.#clock();
    if (now - this.#until > 86_400_000) this.#times = 0;
    this.why = why;
    this.#until = now + Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#times++);
    if (shut) this.#shutUntil = this.#until;
  }

  /** Whether there is no link with it either. */
  get isShut(): boolean {
    return this.#shutUntil > this.#clock();
  }

  /** Seconds until it is over; 0: it is not benched. */
  get left(): number {
    return Math.max(0, (this.#until - this.#clock()) / 1000);
  }
}
