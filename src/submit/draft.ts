import { ClassAd, evaluate, isInt, Real, toDouble, type Value } from '../classad/api.ts';
import type { Attr } from './attr.ts';

interface Named {
  /** As first written. */
  readonly name: string;
  readonly attr: Attr;
}

export type Attributes = ReadonlyMap<string, Named>;

const PREFIXED = new WeakMap<Attributes, Map<string, readonly string[]>>();

/** The names in a finished ad; searched once. */
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

/** The attributes that a step has read and set, by name in lower case. */
export interface Trace {
  readonly reads?: Set<string>;
  readonly writes: Set<string>;
}

/**
 * An ad in the making. On top of a base (the cluster's ad) it only stores differences: setting an attribute to the
 * base's value removes it here, and an attribute not set here has the base's value.
 */
export class Draft {
  readonly base: Attributes | undefined;
  readonly #own = new Map<string, Named>();
  trace: Trace | undefined;

  constructor(base?: Attributes) {
    this.base = base;
  }

  /** The attributes that differ from the base. */
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

  /** Copies an attribute set by an earlier run. */
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

  /** A number, from a constant or from evaluating the ad. */
  number(name: string): number | undefined {
    const value = this.value(name);
    if (typeof value === 'boolean') return Number(value);
    return isInt(value) || value instanceof Real ? toDouble(value) : undefined;
  }

  /** The number written in the attribute; `undefined` if it is an expression or anything else. */
  literalNumber(name: string): number | undefined {
    const attr = this.get(name);
    return attr?.kind === 'int' || attr?.kind === 'real' || attr?.kind === 'bool' ? Number(attr.value) : undefined;
  }

  /** The value, evaluated in the ad in its present state. */
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
