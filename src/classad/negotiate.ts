import type { ClassAd } from './ad.ts';
import { MatchAnalysis } from './match-analysis.ts';
import { Matchmaker } from './matchmaker.ts';
import { Population, reach, Signatures } from './population.ts';
import type { EvalOptions } from './state.ts';

/** The expressions that decide a match. */
const MATCHING = ['requirements', 'rank'];

/** Things (jobs, slots) that no match can tell apart, and an ad that represents them all. */
export interface AdKind<T> {
  readonly ad: ClassAd;
  readonly members: readonly T[];
}

/**
 * The attributes (in lower case) that can affect these matches: those of the left ads, and those of the right ones.
 * They are what Requirements and Rank refer to on either side, and in turn what these depend on; all attributes if an
 * expression can look at any.
 */
export function significantAttributes(
  left: Iterable<ClassAd>,
  right: Iterable<ClassAd>,
): { left: readonly string[]; right: readonly string[] } {
  const [a, b] = [new Population([...left]), new Population([...right])];
  const { mine, theirs, dynamic } = reach({ my: MATCHING, target: MATCHING, dynamic: false }, a, b);
  return dynamic ? { left: a.names(), right: b.names() } : { left: [...mine].sort(), right: [...theirs].sort() };
}

/** Groups things by the signature of their ads; kinds and members keep the order of first appearance. */
export function groupByKind<T>(
  things: Iterable<T>,
  adOf: (thing: T) => ClassAd,
  names: readonly string[],
): AdKind<T>[] {
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

/** A job matched to a slot. */
export interface Match<J, S> {
  readonly job: J;
  readonly slot: S;
}

export interface Matches<J, S> {
  readonly matches: readonly Match<J, S>[];
  /** Kinds with jobs that got no slot: how many jobs, and how many kinds of slots match them at all. */
  readonly unserved: readonly { readonly kind: AdKind<J>; readonly jobs: number; readonly willing: number }[];
}

/**
 * Gives each job a slot: kinds of jobs in the order given, each taking the slots it ranks highest (then those that rank
 * the job highest, then the order given). Each pair of kinds is tested once, so an additional job of a known kind costs
 * no more than its slot.
 */
export function matchMany<J, S>(
  jobs: readonly AdKind<J>[],
  slots: readonly AdKind<S>[],
  options?: EvalOptions,
): Matches<J, S> {
  const matchmaker = new Matchmaker(options);
  const [left, right] = [new Population(jobs.map(({ ad }) => ad)), new Population(slots.map(({ ad }) => ad))];
  const pairs = { left: new MatchAnalysis(left, right, matchmaker), right: new MatchAnalysis(right, left, matchmaker) };
  const orders = slots.map((_slot, order) => order);
  const next = slots.map(() => 0);
  const matches: Match<J, S>[] = [];
  const unserved: { kind: AdKind<J>; jobs: number; willing: number }[] = [];
  for (const [at, kind] of jobs.entries()) {
    const choice = orders.filter((order) => pairs.right.accepts(order, at) && pairs.left.accepts(at, order));
    let given = 0;
    const open = (order: number): boolean => (next[order] ?? 0) < (slots[order]?.members.length ?? 0);
    for (const order of ranked(choice, open, pairs, at)) {
      const members = slots[order]?.members ?? [];
      let taken = next[order] ?? 0;
      for (; given < kind.members.length && taken < members.length; taken += 1, given += 1) {
        matches.push({ job: kind.members[given] as J, slot: members[taken] as S });
      }
      next[order] = taken;
      if (given === kind.members.length) break;
    }
    if (given < kind.members.length) unserved.push({ kind, jobs: kind.members.length - given, willing: choice.length });
  }
  return { matches, unserved };
}

/** The kinds of slots that still have free ones, best first. */
function ranked(choice: readonly number[], open: (order: number) => boolean, pairs: Pairs, at: number): number[] {
  return choice
    .filter(open)
    .map((order) => ({ order, rank: pairs.left.rank(at, order), back: pairs.right.rank(order, at) }))
    .sort((a, b) => b.rank - a.rank || b.back - a.back || a.order - b.order)
    .map(({ order }) => order);
}

interface Pairs {
  readonly left: MatchAnalysis;
  readonly right: MatchAnalysis;
}
