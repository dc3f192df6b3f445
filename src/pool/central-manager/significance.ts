import { attributesOf, type Expr } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { adFrom } from '../wire/ads.ts';

const MATCHING = ['requirements', 'rank', 'start', 'concurrencylimits'];

/** An ad's attribute texts, by lower-case name. */
export type Folded = ReadonlyMap<string, string>;

export function folded(texts: AttrTexts): Folded {
  const all = new Map<string, string>();
  for (const [name, text] of Object.entries(texts)) if (text !== null) all.set(name.toLowerCase(), text);
  return all;
}

/**
 * Which attributes of jobs and machines can affect a match: those that Requirements and Rank of either side refer to,
 * directly or indirectly. The set only grows; ads that are equal in these attributes are of one kind.
 */
export class Significance {
  /** Incremented with every new name: kinds formed before may have to be split. */
  version = 0;
  /** An expression was seen that may refer to any attribute, so no two ads are considered alike. */
  dynamic = false;
  readonly #names = { job: new Set(MATCHING), machine: new Set(MATCHING) };
  readonly #seen = new Set<string>();

  /** Records the attributes that an ad of either side refers to. */
  learn(side: 'job' | 'machine', texts: AttrTexts, all: Folded): void {
    const expressions = MATCHING.map((name) => all.get(name) ?? '').join('\0');
    const known = `${side}\0${expressions}`;
    if (this.#seen.has(known)) return;
    this.#seen.add(known);
    const ad = adFrom(texts);
    const other = side === 'job' ? 'machine' : 'job';
    for (const name of MATCHING) {
      const expr = ad.find(name);
      if (!expr) continue;
      const { my, target, dynamic } = attributesOf(expr, ad);
      this.dynamic ||= dynamic;
      this.#add(side, my);
      this.#add(other, target);
    }
  }

  /** Records the attributes of either side that a rule of the pool refers to. */
  learnRule(expr: Expr): void {
    const { my, target, dynamic } = attributesOf(expr);
    this.dynamic ||= dynamic;
    this.#add('machine', my);
    this.#add('job', target);
  }

  /** Whether an attribute, in lower case, of this side can affect a match, by what was learnt. */
  has(side: 'job' | 'machine', name: string): boolean {
    return this.#names[side].has(name);
  }

  /** Equal for ads of the same kind. */
  signature(side: 'job' | 'machine', all: Folded): string {
    let text = '';
    for (const name of this.#names[side]) text += `${all.get(name) ?? ''}\0`;
    return text;
  }

  #add(side: 'job' | 'machine', names: Iterable<string>): void {
    for (const name of names) {
      if (this.#names[side].has(name)) continue;
      this.#names[side].add(name);
      this.version += 1;
    }
  }
}
