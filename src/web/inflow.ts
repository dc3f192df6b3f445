import { deferred } from '../util/deferred.ts';

/** Items that are added while others are read; ends when it is closed and empty. */
export class Inflow<T> {
  #items: T[] = [];
  /** Items that were added and not read. */
  #waiting = 0;
  #closed = false;
  #changed = deferred<void>();

  /** Throws once it is closed. */
  add(items: readonly T[]): void {
    if (this.#closed) throw new Error('It is closed.');
    for (const item of items) this.#items.push(item);
    this.#waiting += items.length;
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  get closed(): boolean {
    return this.#closed;
  }

  async *read(): AsyncGenerator<T> {
    for (;;) {
      const items = this.#items;
      this.#items = [];
      for (const item of items) {
        this.#waiting -= 1;
        this.#wake();
        yield item;
      }
      if (this.#items.length > 0) continue;
      if (this.#closed) return;
      await this.#changed.promise;
    }
  }

  /** Resolves when at most so many wait to be read, or when `signal` is aborted; the number that waits. */
  async below(most: number, signal: AbortSignal): Promise<number> {
    const woken = () => this.#wake();
    signal.addEventListener('abort', woken, { once: true });
    while (this.#waiting > most && !signal.aborted) await this.#changed.promise;
    signal.removeEventListener('abort', woken);
    return this.#waiting;
  }

  #wake(): void {
    const { resolve } = this.#changed;
    this.#changed = deferred<void>();
    resolve();
  }
}
