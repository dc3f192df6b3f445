import type { Place } from './fault.ts';

export interface Macro {
  /** As it was first written; names are equal without regard to case. */
  readonly name: string;
  value: string;
  place: Place;
  /** `loop`: a variable of a queue statement. `internal`: set by us, never called unused. */
  origin: 'file' | 'argument' | 'loop' | 'internal';
  used: boolean;
}

/**
 * What a submit description has said so far: HTCondor's "submit hash". Every `name = value` line is a macro; a command is a
 * macro whose name means something.
 */
export class MacroTable {
  readonly #entries = new Map<string, Macro>();
  readonly #defaults: Map<string, string>;
  #hasPrefixed = false;
  /** Told every name that is looked up, in lower case. */
  onLookup: ((key: string) => void) | undefined;

  constructor(defaults: ReadonlyMap<string, string> = new Map()) {
    this.#defaults = new Map([...defaults].map(([name, value]) => [name.toLowerCase(), value]));
  }

  /** A copy as of now; later changes of one do not show in the other. */
  clone(): MacroTable {
    const copy = new MacroTable(this.#defaults);
    for (const [key, macro] of this.#entries) copy.#entries.set(key, { ...macro });
    copy.#hasPrefixed = this.#hasPrefixed;
    return copy;
  }

  /** The raw value: defined, else the default; and the macro counts as used. `SUBMIT.name` goes before `name`. */
  lookup(name: string): string | undefined {
    const key = name.toLowerCase();
    this.onLookup?.(key);
    const entry = (this.#hasPrefixed ? this.#entries.get(`submit.${key}`) : undefined) ?? this.#entries.get(key);
    if (entry) {
      entry.used = true;
      return entry.value;
    }
    return this.#defaults.get(key);
  }

  /** The definition, without counting as a use. */
  find(name: string): Macro | undefined {
    return this.#entries.get(name.toLowerCase());
  }

  define(name: string, value: string, place: Place, origin: Macro['origin'] = 'file'): void {
    const key = name.toLowerCase();
    if (key.startsWith('submit.')) this.#hasPrefixed = true;
    const entry = this.#entries.get(key);
    if (!entry) this.#entries.set(key, { name, value, place, origin, used: false });
    else Object.assign(entry, { value, place, origin });
  }

  /** Sets a queue statement's variable; a macro of that name keeps its place. */
  setLive(name: string, value: string, place: Place): void {
    const entry = this.#entries.get(name.toLowerCase());
    if (entry) entry.value = value;
    else this.define(name, value, place, 'loop');
  }

  /** Sets the value of a name (in lower case) that is not defined: $(Process) and its like. */
  setDefault(key: string, value: string): void {
    this.#defaults.set(key, value);
  }

  /** All definitions, sorted by name without regard to case. */
  all(): Macro[] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, macro]) => macro);
  }

  defaults(): ReadonlyMap<string, string> {
    return this.#defaults;
  }
}
