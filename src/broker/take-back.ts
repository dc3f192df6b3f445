import { type ClassAd, Matchmaker } from '../classad/api.ts';
import { cpusOf, suitorsOf, Tallies, takenBackFrom } from './choose.ts';
import type { CandidateSite } from './sites.ts';

/** A job that the broker gave to a site and that has not started there. Times in seconds. */
export interface Waiting<J> {
  readonly job: J;
  readonly ad: ClassAd;
  readonly site: string;
  readonly waited: number;
  /** How long it may wait at one site. */
  readonly patience: number;
  /** The site is out of use, and this job is not the one sent to test it. */
  readonly abandoned: boolean;
}

export interface TakeBack<J> {
  readonly job: J;
  /** Sites where it has waited in vain, this one last. */
  readonly from: readonly string[];
}

/**
 * Which jobs to take back from a site where they have waited too long, or that is out of use: those for which another
 * site, not tried yet, has capacity and would start them before their patience ends again. Each site is tried once. `now`:
 * Unix seconds.
 */
export function takeBack<J>(
  waiting: readonly Waiting<J>[],
  sites: readonly CandidateSite[],
  now: number,
): readonly TakeBack<J>[] {
  const matchmaker = new Matchmaker({ now });
  const tallies = new Tallies(sites);
  const back: TakeBack<J>[] = [];
  for (const { job, ad, site, waited, patience, abandoned } of waiting) {
    if (waited < patience && !abandoned) continue;
    const tried = [...takenBackFrom(ad).filter((name) => name !== site), site];
    const cpus = cpusOf(ad);
    const other = suitorsOf(ad, sites, matchmaker).find(
      (suitor) =>
        !tried.includes(suitor.site.name) &&
        tallies.available(suitor.site, cpus) > 0 &&
        tallies.wait(suitor.site, cpus) < patience,
    );
    if (other === undefined) continue;
    tallies.add(other.site);
    back.push({ job, from: tried });
  }
  return back;
}
