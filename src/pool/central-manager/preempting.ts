import { type ClassAd, isInt, Matchmaker, Real, toDouble } from '../../classad/api.ts';
import { adFrom, offerAd } from '../wire/ads.ts';
import type { Attempt, Autocluster } from './attempts.ts';
import { type HeldClaim, takesMore, type Worker } from './collector.ts';
import type { Wanted } from './negotiator.ts';
import { fits, plus } from '../wire/slots.ts';

/** A run to be preempted, and the kind of job that takes its place. */
export interface Preemption {
  readonly worker: Worker;
  readonly claim: HeldClaim;
  readonly attempt: Attempt;
  readonly by: Autocluster;
}

export interface PreemptingOptions {
  readonly workers: Iterable<Worker>;
  readonly attemptOf: (key: Attempt['key']) => Attempt | undefined;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Chooses the runs to preempt for jobs that found no free slot. A machine that ranks a waiting job higher than the one
 * it is running gives its slot to that job (HTCondor's preemption by machine RANK), after the time that it promised to
 * leave a job undisturbed (the machine's MaxJobRetirementTime, or less if the job asks for less). Each round preempts
 * at most one run for each kind: the one that the machine ranks lowest.
 */
export function preemptions(
  unserved: readonly Wanted<Autocluster>[],
  { workers, attemptOf, now }: PreemptingOptions,
): Preemption[] {
  const choosy = [...workers].filter((worker) => takesMore(worker) && worker.claims.size > 0 && ranks(worker));
  if (choosy.length === 0) return [];
  const matchmaker = new Matchmaker({ now });
  const chosen = new Set<HeldClaim>();
  const found: Preemption[] = [];
  for (const wanted of unserved) {
    let best: (Preemption & { readonly rank: number }) | undefined;
    for (const worker of choosy) {
      // One preemption at a time for each kind: the next round looks again.
      if ([...worker.claims.values()].some(({ promised }) => promised === wanted.kind)) {
        best = undefined;
        break;
      }
      if (worker.refused.has(wanted.kind)) continue;
      for (const claim of worker.claims.values()) {
        const attempt = claim.key === undefined ? undefined : attemptOf(claim.key);
        if (
          !attempt ||
          chosen.has(claim) ||
          claim.promised ||
          attempt.cancelling ||
          !isOver(attempt, worker, now, matchmaker)
        )
          continue;
        const space = plus(worker.free, claim.size);
        if (!fits(wanted.size, space)) continue;
        const machine = offerAd(worker.ad, space);
        const rank = matchmaker.rank(machine, claim.kind.ad);
        if (matchmaker.rank(machine, wanted.ad) <= rank || !matchmaker.matches(wanted.ad, machine)) continue;
        if (!best || rank < best.rank) best = { worker, claim, attempt, by: wanted.kind, rank };
      }
    }
    if (!best) continue;
    chosen.add(best.claim);
    found.push(best);
  }
  return found;
}

/** False if the machine's Rank is missing or a constant, so that it ranks all jobs alike. */
function ranks(worker: Worker): boolean {
  const text = worker.texts['Rank'];
  return text !== undefined && text !== null && !/^\s*[\d.]*\s*$/.test(text);
}

/** Whether it has run for as long as its machine promises every job, or for the shorter time it asked for itself. */
function isOver({ phase, startedAt, request }: Attempt, worker: Worker, now: number, matchmaker: Matchmaker): boolean {
  if (phase !== 'running' && phase !== 'suspended') return false;
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
