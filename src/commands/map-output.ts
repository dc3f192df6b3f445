/** Passes results on as they arrive, or in the order of their inputs. */
export class InOrder<T extends { readonly index: number }> {
  readonly #waiting = new Map<number, T>();
  readonly #keep: boolean;
  readonly #write: (one: T) => void;
  #next = 0;

  constructor(keep: boolean, write: (one: T) => void) {
    this.#keep = keep;
    this.#write = write;
  }

  take(one: T): void {
    if (!this.#keep) return this.#write(one);
    this.#waiting.set(one.index, one);
    for (let next = this.#waiting.get(this.#next); next; next = this.#waiting.get(this.#next)) {
      this.#waiting.delete(this.#next++);
      this.#write(next);
    }
  }

  /** Nothing more comes: passes on what waits for others. */
  end(): void {
    for (const [, one] of [...this.#waiting].sort(([a], [b]) => a - b)) this.#write(one);
    this.#waiting.clear();
  }
}

/** Tags each line of a task's output, whatever bytes it contains. */
export function tagged(output: Buffer, tag: string): Buffer {
  if (tag === '') return output;
  const bytes = Buffer.from(tag).toString('latin1');
  return Buffer.from(
    output.toString('latin1').replaceAll(/(?<![^\n])(?=[^])/g, () => bytes),
    'latin1',
  );
}
