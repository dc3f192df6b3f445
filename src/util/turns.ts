/** Work of which only some goes on at a time; the rest waits in the order in which it came. */
export class Turns {
  /** How much may go on at once; 0: no limit. */
  readonly #most: () => number;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  constructor(most: () => number) {
    this.#most = most;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isFull()) await new Promise<void>((resume) => this.#waiting.push(resume));
    this.#busy += 1;
    try {
      return await work();
    } finally {
      this.#busy -= 1;
      if (!this.#isFull()) this.#waiting.shift()?.();
    }
  }

  #isFull(): boolean {
    const most = this.#most();
    return most > 0 && this.#busy >= most;
  }
}
