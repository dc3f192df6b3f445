/**
 * Attribute names and old-ClassAd expression texts of one layer: `{ Cmd: '"/bin/true"', JobPrio: '0' }`. `null` hides
 * the layer below.
 */
export type AttrTexts = Readonly<Record<string, string | null>>;

/** Checked by hand, because every job that is read passes here. */
export function isAttrTexts(value: unknown): value is Record<string, string | null> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  for (const text of Object.values(value)) if (typeof text !== 'string' && text !== null) return false;
  return true;
}

/** An attribute named `__proto__` must be defined, because an assignment would lose it. */
const VALUE = { enumerable: true, writable: true, configurable: true } as const;

/**
 * A job's attributes, from name to expression text, in layers: the job's own lie over its cluster's. Names are compared
 * ignoring case (HTCondor manual, "ClassAd syntax") and keep the spelling of the lowest layer that has them.
 */
export class Attrs implements Iterable<readonly [name: string, text: string]> {
  /** The layer below, shared by all jobs of a cluster, so that an evaluator can parse it once. */
  readonly parent: Attrs | undefined;
  #own: AttrTexts | (() => AttrTexts);
  readonly #peek: ((low: string) => string | null | undefined) | undefined;
  /** For a shared layer: the spelling here, by name in lower case. */
  #index: Map<string, string> | undefined;
  #record: Readonly<Record<string, string>> | undefined;
  /** For a layer over another: whether each name is spelled as usual. */
  #usual: boolean | undefined;

  /**
   * `own`: a function is called when an attribute of this layer is first read. `peek` tells of a name in lower case, as far
   * as that is known without the function, its text, or `null`: this layer does not have it.
   */
  constructor(own: AttrTexts | (() => AttrTexts), parent?: Attrs, peek?: (low: string) => string | null | undefined) {
    this.#own = own;
    this.parent = parent;
    this.#peek = peek;
  }

  /** The attributes of this layer only. */
  get own(): AttrTexts {
    if (typeof this.#own === 'function') this.#own = this.#own();
    return this.#own;
  }

  get(name: string): string | undefined {
    if (typeof this.#own === 'function' && this.#peek !== undefined) {
      const seen = this.#peek(name.toLowerCase());
      if (seen !== undefined) return seen ?? this.parent?.get(name);
    }
    const text = Object.hasOwn(this.own, name) ? this.own[name] : undefined;
    if (text !== undefined) return text ?? undefined;
    const mine = this.#spelled(name);
    return mine === undefined ? this.parent?.get(name) : (this.own[mine] ?? undefined);
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  [Symbol.iterator](): IterableIterator<readonly [string, string]> {
    return Object.entries(this.toRecord()).values();
  }

  toRecord(): Record<string, string> {
    // The parent serves many jobs, so its own record is built once.
    const record: Record<string, string> = this.parent ? { ...this.parent.#shared() } : {};
    for (const name in this.own) {
      const text = this.own[name];
      const spelled = (this.parent ? this.parent.#lowest(name) : undefined) ?? name;
      if (typeof text !== 'string') delete record[spelled];
      else if (spelled === '__proto__') Object.defineProperty(record, spelled, { ...VALUE, value: text });
      else record[spelled] = text;
    }
    return record;
  }

  #shared(): Readonly<Record<string, string>> {
    this.#record ??= this.toRecord();
    return this.#record;
  }

  #lowest(name: string): string | undefined {
    return (this.parent ? this.parent.#lowest(name) : undefined) ?? this.#spelled(name);
  }

  /** The name as spelled in this layer, if it has it. */
  #spelled(name: string): string | undefined {
    if (Object.hasOwn(this.own, name)) return name;
    const usual = this.parent && usualSpelling(name);
    if (usual !== undefined && this.#isUsual()) return Object.hasOwn(this.own, usual) ? usual : undefined;
    const low = name.toLowerCase();
    if (this.parent) {
      // An index of so small a layer would cost more than it saves.
      for (const mine in this.own) if (mine.length === name.length && mine.toLowerCase() === low) return mine;
      return undefined;
    }
    this.#index ??= new Map(Object.keys(this.own).map((mine) => [mine.toLowerCase(), mine]));
    return this.#index.get(low);
  }

  #isUsual(): boolean {
    if (this.#usual === undefined) {
      this.#usual = true;
      for (const name in this.own) if (usualSpelling(name) !== name) this.#usual = false;
    }
    return this.#usual;
  }
}

/** By name in any spelling. Never emptied, because layers remember what they learned from it. */
const spellings = new Map<string, string>();
const REMEMBERED = 20_000;

/** The spelling in which this process saw the name first; `undefined` after too many names. */
function usualSpelling(name: string): string | undefined {
  const known = spellings.get(name);
  if (known !== undefined || spellings.size >= REMEMBERED) return known;
  const low = name.toLowerCase();
  const usual = spellings.get(low) ?? name;
  spellings.set(low, usual).set(name, usual);
  return usual;
}

/** The same attributes with pending changes; `null` removes one. */
export function withAttrs(attrs: Attrs, about: AttrTexts): Attrs {
  return new Attrs(about, attrs);
}
