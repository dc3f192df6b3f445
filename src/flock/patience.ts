/** How long jobs of ours have waited without a break, by a clock in milliseconds. */
export class Patience {
  #since: number | undefined;

  /** Whether jobs have waited for so long (milliseconds) that they may go to a partner. */
  look(waiting: boolean, patienceMs: number, now: number): boolean {
    if (!waiting) this.#since = undefined;
    else this.#since ??= now;
    return this.#since !== undefined && now - this.#since >= patienceMs;
  }
}
