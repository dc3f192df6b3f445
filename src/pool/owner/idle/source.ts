/** What one source of signs of the owner says at one look. */
export interface Reading {
  /** Whether it can see anything on this machine. */
  readonly sees: boolean;
  /** Seconds since the last sign that it knows of; `undefined` if there was none since it was first looked at. */
  readonly idle?: number | undefined;
  /** The same, of signs at the machine itself. */
  readonly console?: number | undefined;
  /** What it saw, or why it sees nothing. */
  readonly note: string;
}

/** A source of signs of the owner. `look` returns at once; what takes longer comes with a later look. */
export interface IdleSource {
  readonly name: string;
  /** `at`: seconds by a clock that cannot be set. */
  look(at: number): Reading;
  close?(): void;
}

/** When a value was last seen to change, by a clock that cannot be set. */
export class LastChange<K> {
  readonly #seen = new Map<K, { readonly value: number; at: number | undefined }>();

  /**
   * Records a value; returns when it last changed. `before`: when it changed according to itself, for the first look,
   * if known.
   */
  note(key: K, value: number, at: number, before?: number): number | undefined {
    const known = this.#seen.get(key);
    if (known?.value === value) return known.at;
    const when = known ? at : before;
    this.#seen.set(key, { value, at: when });
    return when;
  }

  /** Forgets those that no longer exist. */
  keepOnly(keys: ReadonlySet<K>): void {
    for (const key of this.#seen.keys()) if (!keys.has(key)) this.#seen.delete(key);
  }

  has(key: K): boolean {
    return this.#seen.has(key);
  }
}
