import { type ClassAd, isInt, Matchmaker, Real, toDouble } from '../../classad/api.ts';
import { inAd, readNumber } from '../../job/values.ts';
import { adFrom, offerAd } from '../wire/ads.ts';
import type { Attempt, Autocluster } from './attempts.ts';
import { type HeldClaim, takesMore, type Worker } from './collector.ts';
import type { WantedKind } from './negotiator.ts';
import type { Priorities } from './priorities.ts';
import { requestAd, slotAd } from './preemption-ads.ts';
import type { Gate } from './sharing.ts';
import type { PreemptionRules } from './sharing-rules.ts';
import { fits, plus } from '../wire/slots.ts';

/** A run to be preempted, and the kind of job that takes its place. */
export interface Preemption {
  readonly worker: Worker;
  readonly claim: HeldClaim;
  readonly attempt: Attempt;
  readonly by: Autocluster;
  readonly because: 'rank' | 'priority';
}

export interface PreemptingOptions {
  readonly workers: Iterable<Worker>;
  readonly attemptOf: (key: Attempt['key']) => Attempt | undefined;
  /** Whether a worker recently refused jobs of this kind. */
  readonly refuses: (worker: Worker, kind: Autocluster) => boolean;
  /** Unix seconds. */
  readonly now: number;
  readonly priorities: Priorities;
  readonly rules: PreemptionRules;
  readonly gate: Gate;
}

interface Candidate {
  readonly worker: Worker;
  readonly claim: HeldClaim;
  readonly attempt: Attempt;
}

/**
 * Chooses the runs to preempt for jobs that found no free slot. A machine that ranks a waiting job higher than the one
 * it is running gives its slot to that job (HTCondor's preemption by machine RANK). After that, owners of better
 * priority take slots of others where PREEMPTION_REQUIREMENTS is true. Both wait for the time that the machine promised
 * to leave a job undisturbed (MaxJobRetirementTime, or less if the job asks for less).
 */
export function preemptions(unserved: readonly WantedKind<Autocluster>[], options: PreemptingOptions): Preemption[] {
  const { attemptOf, now } = options;
  const matchmaker = new Matchmaker({ now });
  const candidates: Candidate[] = [];
  const promised = new Map<Autocluster, number>();
  /** Cores that owners are about to get or lose. */
  const more = new Map<string, number>();
  for (const worker of options.workers) {
    if (!takesMore(worker)) continue;
    for (const claim of worker.claims.values()) {
      if (claim.promised) {
        promised.set(claim.promised, (promised.get(claim.promised) ?? 0) + 1);
        hand(more, claim.kind, claim.promised);
        continue;
      }
      const attempt = claim.key === undefined ? undefined : attemptOf(claim.key);
      if (attempt && !attempt.cancelling && isRunning(attempt)) candidates.push({ worker, claim, attempt });
    }
  }
  const found: Preemption[] = [];
  const chosen = new Set<HeldClaim>();
  const take = (preemption: Preemption) => {
    chosen.add(preemption.claim);
    hand(more, preemption.claim.kind, preemption.by);
    options.gate.take(preemption.by);
    found.push(preemption);
  };
  for (const wanted of unserved) {
    const free = candidates.filter(({ claim, worker }) => !chosen.has(claim) && !options.refuses(worker, wanted.kind));
    const before = promised.get(wanted.kind) ?? 0;
    const barred = () => options.gate.bars(wanted, true) !== undefined;
    if (barred()) continue;
    // One at a time by rank for each kind: the next round looks again.
    const ranked = before === 0 && !(BORROWED in wanted.kind.texts) ? byRank(wanted, free, matchmaker, now) : undefined;
    if (ranked) take(ranked);
    let left = wanted.waiting - before - (ranked ? 1 : 0);
    for (const candidate of left > 0 ? byPriority(wanted, free, matchmaker, options, more) : []) {
      if (left === 0 || barred()) break;
      if (chosen.has(candidate.claim)) continue;
      take({ ...candidate, by: wanted.kind, because: 'priority' });
      left -= 1;
    }
  }
  return found;
}

/** The run that its machine ranks lowest, of those that their machines rank lower than the waiting job. */
function byRank(
  wanted: WantedKind<Autocluster>,
  candidates: readonly Candidate[],
  matchmaker: Matchmaker,
  now: number,
): Preemption | undefined {
  let best: (Preemption & { readonly rank: number }) | undefined;
  for (const { worker, claim, attempt } of candidates) {
    if (!ranks(worker) || !isOver(attempt, worker, now, matchmaker)) continue;
    const machine = spaceFor(wanted, worker, claim);
    if (!machine) continue;
    const rank = matchmaker.rank(machine, claim.kind.ad);
    if (matchmaker.rank(machine, wanted.ad) <= rank || !matchmaker.matches(wanted.ad, machine)) continue;
    if (!best || rank < best.rank) best = { worker, claim, attempt, by: wanted.kind, because: 'rank', rank };
  }
  return best;
}

/**
 * The runs that an owner of better priority may take, in the order of PREEMPTION_RANK, then those that would lose the
 * least work. Lazy, since a run that is taken changes the priorities.
 */
function* byPriority(
  wanted: WantedKind<Autocluster>,
  candidates: readonly Candidate[],
  matchmaker: Matchmaker,
  { priorities, rules, now }: PreemptingOptions,
  more: ReadonlyMap<string, number>,
): Generator<Candidate> {
  const may = ({ claim }: Candidate) => priorities.outranks(wanted.owner, claim.kind.owner, wanted.size.cpus, more);
  const open = candidates.filter((one) => (rules.requirements !== undefined || isBorrowed(one)) && may(one));
  if (open.length === 0 || BORROWED in wanted.kind.texts) return;
  const job = requestAd(wanted, priorities);
  const sorted = open.map((one) => ({ one, rank: rankOf(one, job), since: one.attempt.startedAt ?? now }));
  sorted.sort((a, b) => b.rank - a.rank || b.since - a.since);
  for (const { one } of sorted) {
    const { worker, claim, attempt } = one;
    const over = isBorrowed(one) ? isRetired(attempt, now) : isOver(attempt, worker, now, matchmaker);
    if (!may(one) || !over) continue;
    const machine = spaceFor(wanted, worker, claim);
    if (!machine) continue;
    const prefers = matchmaker.rank(machine, wanted.ad) < matchmaker.rank(machine, claim.kind.ad);
    if (prefers && !isBorrowed(one)) continue;
    const requirements = isBorrowed(one) ? true : rules.requirements;
    if (requirements === undefined) continue;
    if (requirements !== true && matchmaker.evaluate(requirements, slotAd(one, priorities), job) !== true) continue;
    if (matchmaker.matches(wanted.ad, machine)) yield one;
  }

  function rankOf(candidate: Candidate, request: ClassAd): number {
    if (rules.rank === undefined) return 0;
    const value = matchmaker.evaluate(rules.rank, slotAd(candidate, priorities), request);
    return isInt(value) || value instanceof Real ? toDouble(value) : 0;
  }
}

/** The machine with what would be free without the claim, if the job fits into that. */
function spaceFor(wanted: WantedKind<Autocluster>, worker: Worker, claim: HeldClaim): ClassAd | undefined {
  const space = plus(worker.free, claim.size);
  return fits(wanted.size, space) ? offerAd(worker.ad, space) : undefined;
}

function hand(more: Map<string, number>, from: Autocluster, to: Autocluster): void {
  more.set(from.owner, (more.get(from.owner) ?? 0) - from.size.cpus);
  more.set(to.owner, (more.get(to.owner) ?? 0) + to.size.cpus);
}

/** False if the machine's Rank is missing or a constant, so that it ranks all jobs alike. */
function ranks(worker: Worker): boolean {
  const text = worker.texts['Rank'];
  return text !== undefined && text !== null && !/^\s*[\d.]*\s*$/.test(text);
}

function isRunning({ phase }: Attempt): boolean {
  return phase === 'running' || phase === 'suspended';
}

/** Names the pool whose job it is, if it is not one of ours. */
const BORROWED = 'FlockFrom';

/** Jobs of other pools always give way to ours, after the time that was agreed with their owners. */
function isBorrowed({ attempt }: Candidate): boolean {
  return BORROWED in attempt.request.ad;
}

function isRetired({ startedAt, request }: Attempt, now: number): boolean {
  return now - (startedAt ?? now) >= (readNumber(inAd(request.ad), 'MaxJobRetirementTime') ?? 0);
}

/** Whether it has run for as long as its machine promises every job, or for the shorter time it asked for itself. */
export function isOver({ startedAt, request }: Attempt, worker: Worker, now: number, matchmaker: Matchmaker): boolean {
  const job = adFrom(request.ad);
  const promised = seconds(matchmaker, worker.ad, job) ?? 0;
  const asked = seconds(matchmaker, job, worker.ad) ?? promised;
  return now - (startedAt ?? now) >= Math.min(promised, asked);
}

function seconds(matchmaker: Matchmaker, my: ClassAd, target: ClassAd): number | undefined {
  const expr = my.find('maxjobretirementtime');
  if (expr === undefined) return undefined;
  const value = matchmaker.evaluate(expr, my, target);
  return isInt(value) || value instanceof Real ? toDouble(value) : undefined;
}
