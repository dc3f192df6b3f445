import { type ClassAd, type Expr, isInt, Matchmaker, Real, toDouble } from '../../classad/api.ts';
import { offerAd } from '../wire/ads.ts';
import type { Priorities } from './priorities.ts';
import type { Gate } from './sharing.ts';
import { fits, minus } from '../wire/slots.ts';
import type { Size } from '../wire/wire.ts';

/** A kind of jobs that no match can tell apart, of one owner, and how many of them are waiting. */
export interface WantedKind<K> {
  readonly kind: K;
  readonly owner: string;
  readonly ad: ClassAd;
  readonly size: Size;
  readonly waiting: number;
  /** Those of the first job of the kind: JobPrio, then its place among the first jobs of all kinds. */
  readonly prio: number;
  readonly order: number;
  /** How long the worker's allocation must last for one job, in seconds. */
  readonly needs: number;
}

/** What a worker has free. */
export interface Offer<W> {
  readonly worker: W;
  readonly ad: ClassAd;
  readonly free: Size;
  /** Machines with the same shape are equal in everything that a match considers. */
  readonly shape: string;
  /** Seconds until the allocation ends. */
  readonly timeToLive: number;
  /** Whether it recently refused this kind. */
  readonly refuses: (kind: unknown) => boolean;
}

export interface Grant<K, W> {
  readonly kind: K;
  readonly worker: W;
}

/** How jobs choose among machines, beside their own Rank. */
export interface JobRanks {
  /** NEGOTIATOR_PRE_JOB_RANK and NEGOTIATOR_POST_JOB_RANK; MY is the machine. */
  readonly pre: Expr | undefined;
  readonly post: Expr | undefined;
}

export interface NegotiationOptions {
  readonly priorities: Priorities;
  /** Unix seconds. */
  readonly now: number;
  readonly gate?: Gate;
  readonly ranks?: JobRanks;
}

/**
 * One negotiation cycle. Owners take turns by priority, each with the best of their jobs. Those within the quotas of
 * their groups come first, the groups that use the least of theirs before the others; then all others, who share what
 * is left. A job goes to the machine of the highest pre-job rank, then to the one that it ranks highest, then to the
 * one of the highest post-job rank, then to the one that ranks it highest, then in the order of the offers. Each pair of
 * kind and shape is evaluated once.
 */
export function negotiate<K, W>(
  wanted: readonly WantedKind<K>[],
  offers: readonly Offer<W>[],
  { priorities, now, gate, ranks }: NegotiationOptions,
): { readonly grants: readonly Grant<K, W>[]; readonly unserved: readonly K[] } {
  const matchmaker = new Matchmaker({ now });
  const free = offers.map((offer) => offer.free);
  const open = new Map<string, Line<K>[]>();
  for (const one of [...wanted].sort((a, b) => b.prio - a.prio || a.order - b.order)) {
    const lines = open.get(one.owner) ?? [];
    lines.push({ wanted: one, left: one.waiting, choice: undefined, at: 0 });
    open.set(one.owner, lines);
  }
  const grants: Grant<K, W>[] = [];
  const unserved: K[] = [];
  const given = new Map<string, number>();
  let surplus = gate?.hasQuotas !== true;
  /** The owners who take turns now: within quotas, those whose groups have one. */
  let taking = surplus ? open : new Map([...open].filter(([owner]) => gate?.filled(owner) !== undefined));
  for (;;) {
    const owner = nextOwner(taking, priorities, given, surplus ? undefined : gate);
    const lines = owner === undefined ? undefined : taking.get(owner);
    if (owner === undefined || !lines) {
      if (surplus) return { grants, unserved };
      surplus = true;
      taking = open;
      continue;
    }
    const line = lines[0];
    if (!line) {
      taking.delete(owner);
      continue;
    }
    const barred = gate?.bars(line.wanted, surplus);
    if (barred) {
      if (!surplus && barred.by === 'quota') taking.delete(owner);
      else lines.shift();
      continue;
    }
    line.choice ??= choiceOf(line.wanted, offers, free, matchmaker, ranks);
    const best = nextFree(line, free);
    if (best === undefined) {
      lines.shift();
      if (line.left > 0) unserved.push(line.wanted.kind);
      continue;
    }
    const { size, kind } = line.wanted;
    free[best] = minus(free[best] ?? size, size);
    gate?.take(line.wanted);
    grants.push({ kind, worker: (offers[best] as Offer<W>).worker });
    given.set(owner, (given.get(owner) ?? 0) + size.cpus);
    line.left -= 1;
    if (line.left === 0) lines.shift();
  }
}

function nextOwner(
  taking: ReadonlyMap<string, unknown>,
  priorities: Priorities,
  given: ReadonlyMap<string, number>,
  gate: Gate | undefined,
): string | undefined {
  if (taking.size <= 1) return [...taking.keys()][0];
  const order = priorities.order(taking.keys(), given);
  if (!gate) return order[0];
  const filled = order.map((owner) => gate.filled(owner) ?? 0);
  return order[filled.indexOf(Math.min(...filled))];
}

interface Line<K> {
  readonly wanted: WantedKind<K>;
  left: number;
  /** Indexes of the offers that fit, best first. */
  choice: readonly number[] | undefined;
  at: number;
}

function nextFree<K>(line: Line<K>, free: readonly Size[]): number | undefined {
  for (; line.at < (line.choice?.length ?? 0); line.at += 1) {
    const index = line.choice?.[line.at] as number;
    const there = free[index];
    if (there && fits(line.wanted.size, there)) return index;
  }
  return undefined;
}

function choiceOf<K, W>(
  wanted: WantedKind<K>,
  offers: readonly Offer<W>[],
  free: readonly Size[],
  matchmaker: Matchmaker,
  ranks: JobRanks = { pre: undefined, post: undefined },
): number[] {
  const evaluated = new Map<string, readonly number[] | undefined>();
  const fitting: { index: number; keys: readonly number[] }[] = [];
  const of = (expr: Expr | undefined, machine: ClassAd): number => {
    const value = expr === undefined ? 0 : matchmaker.evaluate(expr, machine, wanted.ad);
    return isInt(value) || value instanceof Real ? toDouble(value) : 0;
  };
  for (const [index, offer] of offers.entries()) {
    const there = free[index];
    if (!there || !fits(wanted.size, there) || offer.timeToLive <= wanted.needs || offer.refuses(wanted.kind)) continue;
    const shape = `${offer.shape}\0${there.cpus},${there.memoryMb},${there.diskKb},${there.gpus},${Object.values(there.others ?? {}).join()}`;
    if (!evaluated.has(shape)) {
      const machine = offerAd(offer.ad, there);
      const ok = matchmaker.matches(wanted.ad, machine);
      const own = [matchmaker.rank(wanted.ad, machine), of(ranks.post, machine), matchmaker.rank(machine, wanted.ad)];
      evaluated.set(shape, ok ? [of(ranks.pre, machine), ...own] : undefined);
    }
    const keys = evaluated.get(shape);
    if (keys) fitting.push({ index, keys });
  }
  return fitting.sort((a, b) => byKeys(a.keys, b.keys) || a.index - b.index).map(({ index }) => index);
}

/** The highest first. */
function byKeys(a: readonly number[], b: readonly number[]): number {
  for (const [i, key] of a.entries()) if (key !== b[i]) return (b[i] ?? 0) - key;
  return 0;
}
