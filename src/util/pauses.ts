/** One second, doubled each time up to a minute, in milliseconds. */
export function doubling(times: number): number {
  return Math.min(60_000, 1000 * 2 ** Math.min(times - 1, 30));
}

/** The most names to remember: the one whose failure is oldest is dropped. */
const MOST = 10_000;

/** How long failing things are left alone, by name, and how many times they failed since their last success. */
export class Pauses {
  readonly #failed = new Map<string, { readonly times: number; readonly at: number }>();
  readonly of: (times: number) => number;

  /** `of`: the pause in milliseconds after this many failures. */
  constructor(of: (times: number) => number = doubling) {
    this.of = of;
  }

  /** `now`: milliseconds. Returns the number of failures including this one. */
  failed(name: string, now: number): number {
    const times = (this.#failed.get(name)?.times ?? 0) + 1;
    this.#failed.delete(name);
    this.#failed.set(name, { times, at: now });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > MOST && oldest !== undefined) this.#failed.delete(oldest);
    return times;
  }

  /** True if it had failed before. */
  passed(name: string): boolean {
    return this.#failed.delete(name);
  }

  has(name: string): boolean {
    return this.#failed.has(name);
  }

  /** How many more milliseconds to leave it alone. Setting the clock back does not prolong this. */
  waitMs(name: string, now: number): number {
    const failed = this.#failed.get(name);
    if (!failed) return 0;
    const pause = this.of(failed.times);
    return now < failed.at ? 0 : Math.max(0, failed.at + pause - now);
  }
}
