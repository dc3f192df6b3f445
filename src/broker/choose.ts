import {
  type ClassAd,
  evalInt,
  evalString,
  groupByKind,
  type AdKind,
  Matchmaker,
  significantAttributes,
} from '../classad/api.ts';
import { expectedWait, capacityFor } from './load.ts';
import type { CandidateSite } from './sites.ts';

export interface Choice<J> {
  readonly job: J;
  readonly site: string;
  /** The reason in a phrase. */
  readonly because: string;
}

export interface Choices<J> {
  readonly choices: readonly Choice<J>[];
  /** Jobs left without a site, and how many sites would run them if they had capacity. */
  readonly staying: readonly { readonly jobs: number; readonly willing: number }[];
}

/** Attributes, in lower case, that influence the choice besides those that Requirements and Rank refer to. */
export const ALSO = ['requestcpus', 'hostnumber', 'gryphustakenbackfrom'];

/**
 * Chooses a site for each job that some site suits: Requirements on both sides, then the job's Rank, then the shortest
 * expected wait (to the minute), then the lowest cost. Jobs of one kind are matched once, however many there are. No
 * site gets more than it has capacity for. `now`: Unix seconds.
 */
export function choose<J>(
  jobs: readonly J[],
  adOf: (job: J) => ClassAd,
  sites: readonly CandidateSite[],
  now: number,
): Choices<J> {
  const ads = new Map(jobs.map((job) => [job, adOf(job)]));
  const of = (job: J): ClassAd => ads.get(job) ?? adOf(job);
  const { left } = significantAttributes(
    ads.values(),
    sites.map(({ ad }) => ad),
  );
  const matchmaker = new Matchmaker({ now });
  const tallies = new Tallies(sites);
  const choices: Choice<J>[] = [];
  const staying: { jobs: number; willing: number }[] = [];
  for (const kind of groupByKind(jobs, of, [...new Set([...left, ...ALSO])].sort())) {
    const suitors = suitorsOf(kind.ad, sites, matchmaker);
    const given = place(kind, suitors, tallies, choices);
    if (given < kind.members.length) staying.push({ jobs: kind.members.length - given, willing: suitors.length });
  }
  return { choices, staying };
}

export interface Suitor {
  readonly site: CandidateSite;
  readonly rank: number;
}

/** Sites that match the job both ways; those that it was taken back from only if there is no other. */
export function suitorsOf(job: ClassAd, sites: readonly CandidateSite[], matchmaker: Matchmaker): Suitor[] {
  const all = sites
    .filter(({ ad }) => matchmaker.matches(job, ad))
    .map((site) => ({ site, rank: matchmaker.rank(job, site.ad) }));
  const tried = takenBackFrom(job);
  const fresh = all.filter(({ site }) => !tried.includes(site.name));
  return fresh.length > 0 ? fresh : all;
}

/** Places jobs on what earlier choices have left; the best site changes as it fills. */
function place<J>(kind: AdKind<J>, suitors: readonly Suitor[], tallies: Tallies, choices: Choice<J>[]): number {
  const cpus = cpusOf(kind.ad);
  let given = 0;
  for (const job of kind.members) {
    const best = suitors
      .filter(({ site }) => tallies.available(site, cpus) > 0)
      .map((suitor) => ({ ...suitor, wait: tallies.wait(suitor.site, cpus) }))
      .sort(better)[0];
    if (best === undefined) break;
    tallies.add(best.site);
    choices.push({ job, site: best.site.name, because: because(best, suitors.length) });
    given += 1;
  }
  return given;
}

type Weighed = Suitor & { readonly wait: number };

export function better(a: Weighed, b: Weighed): number {
  return (
    b.rank - a.rank ||
    Math.floor(a.wait / 60) - Math.floor(b.wait / 60) ||
    a.site.cost - b.site.cost ||
    a.wait - b.wait ||
    (a.site.name < b.site.name ? -1 : 1)
  );
}

function because({ rank, wait, site }: Weighed, suitors: number): string {
  const of = suitors === 1 ? 'the only suitable site' : `of ${suitors} suitable sites`;
  return `${of}: rank ${rank}, expected wait ${Math.round(wait)} s, cost ${site.cost}`;
}

/** What the sites have already been given in this round. */
export class Tallies {
  readonly #given = new Map<string, number>();

  constructor(sites: readonly CandidateSite[]) {
    for (const { name } of sites) this.#given.set(name, 0);
  }

  add({ name }: CandidateSite): void {
    this.#given.set(name, (this.#given.get(name) ?? 0) + 1);
  }

  available(site: CandidateSite, cpus: number): number {
    return capacityFor(this.#load(site), cpus);
  }

  wait(site: CandidateSite, cpus: number): number {
    return expectedWait(this.#load(site), cpus);
  }

  #load({ name, load }: CandidateSite): CandidateSite['load'] {
    return { ...load, here: load.here + (this.#given.get(name) ?? 0) };
  }
}

/** Sites where the job has waited too long before. */
export function takenBackFrom(job: ClassAd): readonly string[] {
  const text = evalString(job, 'GryphusTakenBackFrom') ?? '';
  return text === '' ? [] : text.split(',');
}

/** On all its nodes. */
export function cpusOf(job: ClassAd): number {
  return Math.max(1, evalInt(job, 'RequestCpus') ?? 1) * Math.max(1, evalInt(job, 'HostNumber') ?? 1);
}
