import { analyze, explain, type ClassAd, Matchmaker } from '../classad/api.ts';
import { cpusOf, suitorsOf, Tallies } from './choose.ts';
import type { Candidate } from './sites.ts';

/** Why a job without a site has none, in a sentence and its evidence. `now`: Unix seconds. */
export interface Explanation {
  readonly summary: string;
  readonly details: readonly string[];
}

export function explainChoice(job: ClassAd, sites: readonly Candidate[], now: number): Explanation {
  const details = turnedAway(job, sites, now);
  const suitors = suitorsOf(job, sites, new Matchmaker({ now }));
  if (suitors.length === 0) return { summary: `None of ${count(sites.length)} would run it.`, details };
  const tallies = new Tallies(sites);
  const open = suitors.filter(({ site }) => tallies.room(site, cpusOf(job)) > 0);
  const names = suitors.map(({ site }) => site.name).join(', ');
  if (open.length > 0) return { summary: `It is about to be given to a site: ${names}.`, details };
  return { summary: `It waits here until a site that suits it has room for more: ${names}.`, details };
}

/** Which clauses of its Requirements turned away which sites. */
export function turnedAway(job: ClassAd, sites: readonly Candidate[], now: number): string[] {
  const analysis = analyze(
    job,
    sites.map(({ ad }) => ad),
    { now },
  );
  if (analysis.matching === sites.length) return [];
  const matchmaker = new Matchmaker({ now });
  const lines = explain(analysis, 'site').trimEnd().split('\n');
  const by = (accepts: (site: Candidate) => boolean, words: string): string[] => {
    const names = sites.filter((site) => !accepts(site)).map(({ name }) => name);
    return names.length === 0 ? [] : [`${words}: ${names.join(', ')}.`];
  };
  return [
    ...lines,
    ...by(({ ad }) => matchmaker.accepts(job, ad), "Turned away by the job's Requirements"),
    ...by(({ ad }) => !matchmaker.accepts(job, ad) || matchmaker.accepts(ad, job), 'Will not have the job'),
  ];
}

function count(sites: number): string {
  return sites === 1 ? '1 site' : `${sites} sites`;
}
