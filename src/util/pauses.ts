/** One second, doubled each time up to a minute; milliseconds. */
export function doubling(times: number): number {
  return Math.min(60_000, 1000 * 2 ** Math.min(times - 1, 30));
}

/** So many are remembered at most: the one that failed longest ago is forgotten. */
const MOST = 10_000;

/** How long each of what failed is left alone, by name, and how often it failed since it last went well. */
export class Pauses {
  readonly #failed = new Map<string, { readonly times: number; readonly at: number }>();
  readonly of: (times: number) => number;

  /** `of`: the pause after so many failures, milliseconds. */
  constructor(of: (times: number) => number = doubling) {
    this.of = of;
  }

  /** `now`: milliseconds. How often it failed, this time included. */
  failed(name: string, now: number): number {
    const times = (this.#failed.get(name)?.times ?? 0) + 1;
    this.#failed.delete(name);
    this.#failed.set(name, { times, at: now });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > MOST && oldest !== undefined) this.#failed.delete(oldest);
    return times;
  }

  /** True where it had failed before. */
  passed(name: string): boolean {
    return this.#failed.delete(name);
  }

  has(name: string): boolean {
    return this.#failed.has(name);
  }

  /** Milliseconds to leave it alone. A clock that jumped back does not prolong it. */
  waitMs(name: string, now: number): number {
    const failed = this.#failed.get(name);
    if (!failed) return 0;
    const pause = this.of(failed.times);
    return now < failed.at ? 0 : Math.max(0, failed.at + pause - now);
  }
}
