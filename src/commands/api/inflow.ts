import { deferred } from '../../util/deferred.ts';

/** Items that are added while others are read; ends when it is closed and empty. */
export class Inflow<T> {
  #items: T[] = [];
  #closed = false;
  #changed = deferred<void>();

  add(items: readonly T[]): void {
    this.#items.push(...items);
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  async *read(): AsyncGenerator<T> {
    for (;;) {
      const items = this.#items;
      this.#items = [];
      yield* items;
      if (this.#items.length > 0) continue;
      if (this.#closed) return;
      await this.#changed.promise;
    }
  }

  #wake(): void {
    const { resolve } = this.#changed;
    this.#changed = deferred<void>();
    resolve();
  }
}
