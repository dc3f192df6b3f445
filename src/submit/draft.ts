import { ClassAd, evaluate, isInt, Real, toDouble, type Value } from '../classad/api.ts';
import type { Attr } from './attr.ts';

interface Named {
  /** As first written. */
  readonly name: string;
  readonly attr: Attr;
}

export type Attributes = ReadonlyMap<string, Named>;

const PREFIXED = new WeakMap<Attributes, Map<string, readonly string[]>>();

/** The names in a finished ad; looked for once. */
function namesIn(attributes: Attributes, prefix: string): readonly string[] {
  const known = PREFIXED.get(attributes) ?? new Map<string, readonly string[]>();
  PREFIXED.set(attributes, known);
  let names = known.get(prefix);
  if (names === undefined) {
    names = [...attributes].filter(([key]) => key.startsWith(prefix)).map(([, { name }]) => name);
    known.set(prefix, names);
  }
  return names;
}

/** Which attributes a step of the making looked at and set, by name in lower case. */
export interface Trace {
  readonly reads?: Set<string>;
  readonly writes: Set<string>;
}

/**
 * An ad in the making. Over a base (the cluster's ad) it keeps only what differs: an attribute that is set to the base's
 * value is dropped, one that is not set shows the base's.
 */
export class Draft {
  readonly base: Attributes | undefined;
  readonly #own = new Map<string, Named>();
  trace: Trace | undefined;

  constructor(base?: Attributes) {
    this.base = base;
  }

  /** What is set here and not in the base. */
  get own(): Attributes {
    return this.#own;
  }

  get(name: string): Attr | undefined {
    const key = name.toLowerCase();
    this.trace?.reads?.add(key);
    return (this.#own.get(key) ?? this.base?.get(key))?.attr;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  set(name: string, attr: Attr): void {
    const key = name.toLowerCase();
    this.trace?.writes.add(key);
    const below = this.base?.get(key);
    if (below?.attr.text === attr.text) this.#own.delete(key);
    else this.#own.set(key, { name: below?.name ?? this.#own.get(key)?.name ?? name, attr });
  }

  /** Takes over what an earlier run set. */
  adopt(key: string, named: Named): void {
    this.#own.set(key, named);
  }

  string(name: string): string | undefined {
    const value = this.value(name);
    return typeof value === 'string' ? value : undefined;
  }

  bool(name: string): boolean | undefined {
    const value = this.value(name);
    if (typeof value === 'boolean') return value;
    return isInt(value) || value instanceof Real ? toDouble(value) !== 0 : undefined;
  }

  /** A number, of a constant or of what the ad says. */
  number(name: string): number | undefined {
    const value = this.value(name);
    if (typeof value === 'boolean') return Number(value);
    return isInt(value) || value instanceof Real ? toDouble(value) : undefined;
  }

  /** The number that the attribute is written as; `undefined` where it is an expression or something else. */
  literalNumber(name: string): number | undefined {
    const attr = this.get(name);
    return attr?.kind === 'int' || attr?.kind === 'real' || attr?.kind === 'bool' ? Number(attr.value) : undefined;
  }

  /** The value, evaluated in the ad as it is now. */
  value(name: string): Value {
    const attr = this.get(name);
    if (attr === undefined) return undefined;
    if (attr.kind === 'real') return new Real(attr.value);
    return attr.kind === 'expr' ? evaluate(attr.expr, { my: this.#classAd() }) : attr.value;
  }

  /** Names that begin with `prefix` (in lower case), here and in the base. */
  names(prefix: string): string[] {
    const own = [...this.#own].filter(([key]) => key.startsWith(prefix)).map(([, { name }]) => name);
    const below = this.base === undefined ? [] : namesIn(this.base, prefix);
    return [...below, ...own.filter((name) => this.base?.has(name.toLowerCase()) !== true)];
  }

  #classAd(): ClassAd {
    const ad = new ClassAd();
    for (const { name, attr } of new Map([...(this.base ?? []), ...this.#own]).values()) {
      if (attr.kind === 'expr') ad.setExpr(name, attr.expr);
      else ad.set(name, attr.kind === 'real' ? new Real(attr.value) : attr.value);
    }
    return ad;
  }
}
