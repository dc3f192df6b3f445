import { type ClassAd, groupByKind, Matchmaker, significantAttributes } from '../classad/api.ts';
import { ALSO, better, cpusOf, suitorsOf } from './choose.ts';
import { expectedWait, floodCapacityFor } from './load.ts';
import type { CandidateSite } from './sites.ts';

/** A job to be queued at several sites at once. */
export interface Flooded<J> {
  readonly job: J;
  /** Sites that already have a candidate of it. */
  readonly at: readonly string[];
  /** Sites that refused it. */
  readonly refusedBy: readonly string[];
}

export interface Flooding<J> {
  /** New candidates. */
  readonly candidates: readonly { readonly job: J; readonly site: string }[];
  /** Jobs that every suitable site has refused. */
  readonly hopeless: readonly J[];
  /** Jobs without a candidate that none of these sites suits. */
  readonly unsuited: readonly J[];
}

/**
 * Where each flooded job gets candidates: at the sites that would be chosen for it in turn, up to `most`. Unlike in an
 * ordinary choice, a full site is as good as any: waiting in its queue is the point. `now`: Unix seconds.
 */
export function flood<J>(
  jobs: readonly Flooded<J>[],
  adOf: (job: J) => ClassAd,
  sites: readonly CandidateSite[],
  most: number,
  now: number,
): Flooding<J> {
  const ads = new Map(jobs.map((one) => [one, adOf(one.job)]));
  const of = (one: Flooded<J>): ClassAd => ads.get(one) ?? adOf(one.job);
  const { left } = significantAttributes(
    ads.values(),
    sites.map(({ ad }) => ad),
  );
  const matchmaker = new Matchmaker({ now });
  const given = new Map<string, number>();
  const candidates: { job: J; site: string }[] = [];
  const hopeless: J[] = [];
  const unsuited: J[] = [];
  for (const kind of groupByKind(jobs, of, [...new Set([...left, ...ALSO])].sort())) {
    const cpus = cpusOf(kind.ad);
    const suitors = suitorsOf(kind.ad, sites, matchmaker)
      .map((suitor) => ({ ...suitor, wait: expectedWait(suitor.site.load, cpus) }))
      .sort(better);
    for (const { job, at, refusedBy } of kind.members) {
      const open = suitors.filter(({ site }) => !refusedBy.includes(site.name));
      if (open.length === 0 && at.length === 0) (suitors.length > 0 ? hopeless : unsuited).push(job);
      const free = open.filter(
        ({ site }) => !at.includes(site.name) && floodCapacityFor(site.load) > (given.get(site.name) ?? 0),
      );
      for (const { site } of free.slice(0, Math.max(0, most - at.length))) {
        given.set(site.name, (given.get(site.name) ?? 0) + 1);
        candidates.push({ job, site: site.name });
      }
    }
  }
  return { candidates, hopeless, unsuited };
}
