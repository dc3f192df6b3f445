/** Attribute names and old-ClassAd expression texts of one layer: `{ Cmd: '"/bin/true"', JobPrio: '0' }`. `null` hides the layer below. */
export type AttrTexts = Readonly<Record<string, string | null>>;

/**
 * A job's attributes as name to expression text, in layers: what a job says itself lies over what its cluster says. Names
 * compare without regard to case (HTCondor manual, "ClassAd syntax") and keep the spelling of the lowest layer that has them.
 */
export class Attrs implements Iterable<readonly [name: string, text: string]> {
  /** The layer below, shared by all jobs of a cluster: an evaluator may parse it once. */
  readonly parent: Attrs | undefined;
  /** What this layer alone says. */
  readonly own: AttrTexts;
  readonly #index = new Map<string, string>();

  constructor(own: AttrTexts, parent?: Attrs) {
    this.own = own;
    this.parent = parent;
    for (const name in own) this.#index.set(name.toLowerCase(), name);
  }

  get(name: string): string | undefined {
    return this.#find(name.toLowerCase());
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  *[Symbol.iterator](): IterableIterator<readonly [string, string]> {
    if (this.parent) {
      for (const [name, text] of this.parent) {
        const mine = this.#index.get(name.toLowerCase());
        const said = mine === undefined ? text : this.own[mine];
        if (typeof said === 'string') yield [name, said];
      }
    }
    for (const [low, name] of this.#index) {
      const text = this.own[name];
      if (typeof text === 'string' && this.parent?.get(low) === undefined) yield [name, text];
    }
  }

  toRecord(): Record<string, string> {
    return Object.fromEntries(this);
  }

  #find(low: string): string | undefined {
    const name = this.#index.get(low);
    if (name === undefined) return this.parent?.get(low);
    return this.own[name] ?? undefined;
  }
}
