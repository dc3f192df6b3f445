import type { SourcePlace } from './fault.ts';

export interface Macro {
  /** As first written; case is ignored when comparing names. */
  readonly name: string;
  value: string;
  place: SourcePlace;
  /** `loop`: a variable of a queue statement. `internal`: set by us, never reported as unused. */
  origin: 'file' | 'argument' | 'loop' | 'internal';
  used: boolean;
}

/**
 * What a submit description has said so far: HTCondor's "submit hash". Every `name = value` line defines a macro; a
 * command is a macro whose name has a meaning.
 */
export class MacroTable {
  readonly #entries = new Map<string, Macro>();
  readonly #defaults: Map<string, string>;
  #hasPrefixed = false;
  /** Called with every name looked up, in lower case. */
  onLookup: ((key: string) => void) | undefined;

  constructor(defaults: ReadonlyMap<string, string> = new Map()) {
    this.#defaults = new Map([...defaults].map(([name, value]) => [name.toLowerCase(), value]));
  }

  /** An independent copy of the present state. */
  clone(): MacroTable {
    const copy = new MacroTable(this.#defaults);
    for (const [key, macro] of this.#entries) copy.#entries.set(key, { ...macro });
    copy.#hasPrefixed = this.#hasPrefixed;
    return copy;
  }

  /**
   * The raw value, defined or else the default; marks the macro as used. `SUBMIT.name` takes precedence over `name`.
   */
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

  /** The definition, without marking the macro as used. */
  find(name: string): Macro | undefined {
    return this.#entries.get(name.toLowerCase());
  }

  define(name: string, value: string, place: SourcePlace, origin: Macro['origin'] = 'file'): void {
    const key = name.toLowerCase();
    if (key.startsWith('submit.')) this.#hasPrefixed = true;
    const entry = this.#entries.get(key);
    if (!entry) this.#entries.set(key, { name, value, place, origin, used: false });
    else Object.assign(entry, { value, place, origin });
  }

  /** Sets a queue statement's variable; an existing macro of that name keeps its place in the file. */
  setLive(name: string, value: string, place: SourcePlace): void {
    const entry = this.#entries.get(name.toLowerCase());
    if (entry) entry.value = value;
    else this.define(name, value, place, 'loop');
  }

  /** Sets the value of a name (in lower case) that has no definition: $(Process) and similar. */
  setDefault(key: string, value: string): void {
    this.#defaults.set(key, value);
  }

  /** All definitions, sorted by name ignoring case. */
  all(): Macro[] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, macro]) => macro);
  }

  defaults(): ReadonlyMap<string, string> {
    return this.#defaults;
  }
}
