import { deferred } from '../util/deferred.ts';

/** The requests that are being answered, also those whose clients have left: a submit goes on without its client. */
export class Running {
  #count = 0;
  #none = deferred<void>();

  get count(): number {
    return this.#count;
  }

  async track<T>(work: Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await work;
    } finally {
      this.#count -= 1;
      if (this.#count === 0) {
        this.#none.resolve();
        this.#none = deferred<void>();
      }
    }
  }

  /** Resolves when none is left. */
  async ended(): Promise<void> {
    if (this.#count > 0) await this.#none.promise;
  }
}
