import { type ClassAd, Matchmaker } from '../../classad/api.ts';
import { offerAd } from '../wire/ads.ts';
import type { Priorities } from './priorities.ts';
import { fits, minus } from '../wire/slots.ts';
import type { Size } from '../wire/wire.ts';

/** A kind of jobs that no match can tell apart, of one owner, and how many of them are waiting. */
export interface Wanted<K> {
  readonly kind: K;
  readonly owner: string;
  readonly ad: ClassAd;
  readonly size: Size;
  readonly waiting: number;
  /** Those of the first job of the kind: JobPrio, then the order of arrival. */
  readonly prio: number;
  readonly order: number;
  /** The expected run time of one job, in seconds; `undefined` if unknown. */
  readonly expected: number | undefined;
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

/** A job of unknown run time is not started on a worker with less than this time left, in seconds. */
const LEAST_TIME = 90;

/**
 * One negotiation cycle. Owners take turns by priority, each with the best of their jobs. A job goes to the machine
 * that it ranks highest, then to the one that ranks it highest, then in the order of the offers. Each pair of kind and
 * shape is evaluated once.
 */
export function negotiate<K, W>(
  wanted: readonly Wanted<K>[],
  offers: readonly Offer<W>[],
  priorities: Priorities,
  now: number,
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
  for (;;) {
    const owner = open.size > 1 ? priorities.order(open.keys(), given)[0] : [...open.keys()][0];
    const lines = owner === undefined ? undefined : open.get(owner);
    if (owner === undefined || !lines) return { grants, unserved };
    const line = lines[0];
    if (!line) {
      open.delete(owner);
      continue;
    }
    line.choice ??= choiceOf(line.wanted, offers, free, matchmaker);
    const best = nextFree(line, free);
    if (best === undefined) {
      lines.shift();
      if (line.left > 0) unserved.push(line.wanted.kind);
      continue;
    }
    const { size, kind } = line.wanted;
    free[best] = minus(free[best] ?? size, size);
    grants.push({ kind, worker: (offers[best] as Offer<W>).worker });
    given.set(owner, (given.get(owner) ?? 0) + size.cpus);
    line.left -= 1;
    if (line.left === 0) lines.shift();
  }
}

interface Line<K> {
  readonly wanted: Wanted<K>;
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
  wanted: Wanted<K>,
  offers: readonly Offer<W>[],
  free: readonly Size[],
  matchmaker: Matchmaker,
): number[] {
  const evaluated = new Map<string, { readonly rank: number; readonly back: number } | undefined>();
  const fitting: { index: number; rank: number; back: number }[] = [];
  for (const [index, offer] of offers.entries()) {
    const there = free[index];
    if (!there || !fits(wanted.size, there) || !lastsFor(wanted, offer) || offer.refuses(wanted.kind)) continue;
    const shape = `${offer.shape}\0${there.cpus},${there.memoryMb},${there.diskKb},${there.gpus}`;
    if (!evaluated.has(shape)) {
      const machine = offerAd(offer.ad, there);
      const ok = matchmaker.matches(wanted.ad, machine);
      const ranks = { rank: matchmaker.rank(wanted.ad, machine), back: matchmaker.rank(machine, wanted.ad) };
      evaluated.set(shape, ok ? ranks : undefined);
    }
    const matchAnalysis = evaluated.get(shape);
    if (matchAnalysis) fitting.push({ index, ...matchAnalysis });
  }
  return fitting.sort((a, b) => b.rank - a.rank || b.back - a.back || a.index - b.index).map(({ index }) => index);
}

/** Whether a job is expected to end before the worker's allocation does. */
export function lastsFor(
  { expected }: { readonly expected: number | undefined },
  { timeToLive }: { readonly timeToLive: number },
): boolean {
  return timeToLive > (expected === undefined ? LEAST_TIME : LEAST_TIME + expected);
}
