/** Admits a limited number of holders; the others wait in line. */
export class Limiter {
  readonly #waiting: (() => void)[] = [];
  #limit: number;
  #held = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Whether the next holder would have to wait. */
  get full(): boolean {
    return this.#held >= this.#limit;
  }

  get held(): number {
    return this.#held;
  }

  /** Resolves with a function that gives the place back (once; later calls do nothing). */
  async acquire(): Promise<() => void> {
    if (this.#held >= this.#limit) await new Promise<void>((enter) => void this.#waiting.push(enter));
    else this.#held++;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const next = this.#held > this.#limit ? undefined : this.#waiting.shift();
      if (next === undefined) this.#held--;
      else next();
    };
  }

  /** Holders beyond the new limit stay, but nobody is admitted until they have left. */
  shrink(limit: number): void {
    this.#limit = Math.max(1, Math.min(this.#limit, limit));
  }
}
