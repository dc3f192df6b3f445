import type { ClassAd } from './ad.ts';
import { attrKey } from './bytes.ts';
import type { Expr } from './expr.ts';
import { printExpr } from './printer.ts';
import { attributesOf } from './references.ts';

/** Tells ads apart by some of their attributes: ads with the same signature are of one kind (one autocluster). */
export class Signatures {
  private readonly names: readonly string[];
  private readonly known: ReadonlySet<string>;
  private readonly texts = new Map<string, number>();
  private readonly exprs = new WeakMap<Expr, number>();
  private readonly inherited = new WeakMap<ClassAd, string>();

  constructor(names: readonly string[]) {
    this.names = names;
    this.known = new Set(names);
  }

  of(ad: ClassAd): string {
    const parent = ad.chainedParent;
    return parent === undefined || this.differs(ad) ? this.read(ad) : this.ofParent(parent);
  }

  /** Whether an ad has an attribute of its own that matters. */
  private differs(ad: ClassAd): boolean {
    let differs = false;
    ad.forEachOwn((key) => {
      differs ||= this.known.has(key);
    });
    return differs;
  }

  private ofParent(parent: ClassAd): string {
    const known = this.inherited.get(parent);
    if (known !== undefined) return known;
    const signature = this.of(parent);
    this.inherited.set(parent, signature);
    return signature;
  }

  private read(ad: ClassAd): string {
    let signature = '';
    for (const name of this.names) {
      const expr = ad.find(name);
      signature += expr === undefined ? '-,' : `${this.idOf(expr)},`;
    }
    return signature;
  }

  private idOf(expr: Expr): number {
    const known = this.exprs.get(expr);
    if (known !== undefined) return known;
    const text = printExpr(expr, 'new');
    const id = this.texts.get(text) ?? this.texts.size;
    this.texts.set(text, id);
    this.exprs.set(expr, id);
    return id;
  }
}

/** A number for each ad of a population; ads with the same number have equal values of certain attributes. */
export interface Division {
  readonly ids: Int32Array;
  readonly count: number;
}

/** The ads on one side of many matches. */
export class Population {
  readonly ads: readonly ClassAd[];
  private readonly divisions = new Map<string, Division>();
  private readonly having = new Map<string, 'all' | 'none' | 'some'>();
  private computed: Map<string, Map<Expr, ClassAd>> | undefined;

  constructor(ads: readonly ClassAd[]) {
    this.ads = ads;
  }

  /** Divides the ads by these attributes; with `undefined`, each ad is separate. */
  divided(names: readonly string[] | undefined): Division {
    const key = names === undefined ? '*' : names.join(',');
    const known = this.divisions.get(key);
    if (known !== undefined) return known;
    const division = names === undefined ? this.apart() : this.divide(names);
    this.divisions.set(key, division);
    return division;
  }

  private apart(): Division {
    return { ids: Int32Array.from(this.ads, (_ad, at) => at), count: this.ads.length };
  }

  private divide(names: readonly string[]): Division {
    const signatures = new Signatures(names);
    const numbers = new Map<string, number>();
    const ids = Int32Array.from(this.ads, (ad) => {
      const signature = signatures.of(ad);
      const id = numbers.get(signature) ?? numbers.size;
      numbers.set(signature, id);
      return id;
    });
    return { ids, count: numbers.size };
  }

  /** The distinct non-constant expressions of an attribute in this population, each with an ad that contains it. */
  expressions(name: string): readonly (readonly [Expr, ClassAd])[] {
    this.computed ??= this.index();
    return [...(this.computed.get(name) ?? [])];
  }

  private index(): Map<string, Map<Expr, ClassAd>> {
    const index = new Map<string, Map<Expr, ClassAd>>();
    const seen = new Set<ClassAd>();
    for (const ad of this.ads) {
      for (let each: ClassAd | undefined = ad; each !== undefined && !seen.has(each); each = each.chainedParent) {
        const carrier = each;
        seen.add(carrier);
        carrier.forEachOwn((key, expr) => {
          if (expr.kind === 'literal') return;
          const known = index.get(key) ?? new Map<Expr, ClassAd>();
          if (!known.has(expr)) known.set(expr, carrier);
          index.set(key, known);
        });
      }
    }
    return index;
  }

  /** How many of the ads have an attribute of this name (in lower case). */
  has(name: string): 'all' | 'none' | 'some' {
    const known = this.having.get(name);
    if (known !== undefined) return known;
    const count = this.ads.reduce((sum, ad) => sum + (ad.find(name) === undefined ? 0 : 1), 0);
    const answer = count === 0 ? 'none' : count === this.ads.length ? 'all' : 'some';
    this.having.set(name, answer);
    return answer;
  }

  /** The names of all attributes, in lower case. */
  names(): string[] {
    const names = new Set<string>();
    for (const ad of this.ads) for (const [name] of ad.allEntries()) names.add(attrKey(name));
    return [...names].sort();
  }
}

/** What an expression of one population can depend on, in that population and in the other. */
export interface Reach {
  readonly mine: ReadonlySet<string>;
  readonly theirs: ReadonlySet<string>;
  readonly dynamic: boolean;
}

/**
 * Extends the names in an expression by everything that those attributes depend on, back and forth between the sides.
 */
export function reach(
  first: { my: Iterable<string>; target: Iterable<string>; dynamic: boolean },
  mine: Population,
  theirs: Population,
): Reach {
  const sides = [
    { population: mine, names: new Set(first.my), done: new Set<string>() },
    { population: theirs, names: new Set(first.target), done: new Set<string>() },
  ] as const;
  let { dynamic } = first;
  for (let before = -1; before !== sides[0].names.size + sides[1].names.size; ) {
    before = sides[0].names.size + sides[1].names.size;
    for (const [side, other] of [sides, [sides[1], sides[0]]] as const) {
      for (const name of side.names) {
        if (side.done.has(name)) continue;
        side.done.add(name);
        for (const [expr, ad] of side.population.expressions(name)) {
          const inner = attributesOf(expr, ad);
          for (const each of inner.my) side.names.add(each);
          for (const each of inner.target) other.names.add(each);
          dynamic ||= inner.dynamic;
        }
      }
    }
  }
  return { mine: sides[0].names, theirs: sides[1].names, dynamic };
}
