import type { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';
import { Matchmaker } from './matchmaker.ts';
import { printExpr } from './printer.ts';
import { attributesOf } from './references.ts';
import type { EvalOptions } from './state.ts';

/** The expressions by which an ad takes part in a match. */
const MATCHING = ['requirements', 'rank'];

/** Things (jobs, slots) that no match can tell apart, and an ad that stands for all of them. */
export interface Kind<T> {
  readonly ad: ClassAd;
  readonly members: readonly T[];
}

interface Side {
  readonly ads: readonly ClassAd[];
  readonly names: Set<string>;
  readonly seen: Set<Expr>;
}

/**
 * The attributes (lower case) that can matter in matches of these: those of the left ads, and those of the right ones.
 * What Requirements and Rank look at, on either side, and what that is made of. Equal expressions are looked at once.
 */
export function significantAttributes(
  left: Iterable<ClassAd>,
  right: Iterable<ClassAd>,
): { left: readonly string[]; right: readonly string[] } {
  const [a, b] = [left, right].map((ads): Side => ({ ads: [...ads], names: new Set(MATCHING), seen: new Set() }));
  if (a === undefined || b === undefined) return { left: MATCHING, right: MATCHING };
  for (let before = -1; before !== a.names.size + b.names.size; ) {
    before = a.names.size + b.names.size;
    spread(a, b);
    spread(b, a);
  }
  return { left: [...a.names].sort(), right: [...b.names].sort() };
}

/** Takes note of what the significant attributes of one side look at. */
function spread(side: Side, other: Side): void {
  for (const ad of side.ads) {
    for (const name of side.names) {
      const expr = ad.find(name);
      if (expr === undefined || expr.kind === 'literal' || side.seen.has(expr)) continue;
      side.seen.add(expr);
      const { my, target } = attributesOf(expr, ad);
      for (const each of my) side.names.add(each);
      for (const each of target) other.names.add(each);
    }
  }
}

/** Tells ads apart by some of their attributes: ads of the same signature are of one kind (one autocluster). */
export class Signatures {
  private readonly names: readonly string[];
  private readonly texts = new Map<string, number>();
  private readonly exprs = new WeakMap<Expr, number>();

  constructor(names: readonly string[]) {
    this.names = names;
  }

  of(ad: ClassAd): string {
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

/** Groups things by the signature of their ads, kinds and members in the order of first appearance. */
export function groupByKind<T>(things: Iterable<T>, adOf: (thing: T) => ClassAd, names: readonly string[]): Kind<T>[] {
  const signatures = new Signatures(names);
  const kinds = new Map<string, { ad: ClassAd; members: T[] }>();
  for (const thing of things) {
    const ad = adOf(thing);
    const signature = signatures.of(ad);
    const kind = kinds.get(signature);
    if (kind === undefined) kinds.set(signature, { ad, members: [thing] });
    else kind.members.push(thing);
  }
  return [...kinds.values()];
}

/** A job that got a slot. */
export interface Match<J, S> {
  readonly job: J;
  readonly slot: S;
}

export interface Matches<J, S> {
  readonly matches: readonly Match<J, S>[];
  /** Kinds of jobs of which some got no slot, with how many, and how many kinds of slots would have them at all. */
  readonly left: readonly { readonly kind: Kind<J>; readonly jobs: number; readonly willing: number }[];
}

/**
 * Gives slots to jobs, one each: kinds of jobs in the order given, the slots that the job ranks highest first (then those
 * that rank the job highest, then the order given). Each pair of kinds is tried once, so one more job of a known kind
 * costs nothing but its slot.
 */
export function matchMany<J, S>(
  jobs: readonly Kind<J>[],
  slots: readonly Kind<S>[],
  options?: EvalOptions,
): Matches<J, S> {
  const matchmaker = new Matchmaker(options);
  const free = slots.map((kind, order) => ({ ad: kind.ad, members: kind.members, next: 0, order }));
  const matches: Match<J, S>[] = [];
  const left: { kind: Kind<J>; jobs: number; willing: number }[] = [];
  for (const kind of jobs) {
    const willing = free.filter((each) => matchmaker.matches(kind.ad, each.ad));
    const ranked = willing
      .filter((each) => each.next < each.members.length)
      .map((slot) => ({ slot, rank: matchmaker.rank(kind.ad, slot.ad), back: matchmaker.rank(slot.ad, kind.ad) }))
      .sort((a, b) => b.rank - a.rank || b.back - a.back || a.slot.order - b.slot.order);
    let given = 0;
    for (const { slot } of ranked) {
      while (given < kind.members.length && slot.next < slot.members.length) {
        matches.push({ job: kind.members[given] as J, slot: slot.members[slot.next] as S });
        given += 1;
        slot.next += 1;
      }
    }
    if (given < kind.members.length) left.push({ kind, jobs: kind.members.length - given, willing: willing.length });
  }
  return { matches, left };
}
