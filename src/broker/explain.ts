import { analyze, explain, type ClassAd, Matchmaker } from '../classad/api.ts';
import type { CandidateState } from '../job/candidate-life.ts';
import { clockText, counted } from '../util/plain-text.ts';
import { cpusOf, suitorsOf, Tallies } from './choose.ts';
import type { CandidateSite } from './sites.ts';

/** Why a job has no site yet, in a sentence with evidence. `now`: Unix seconds. */
export interface Explanation {
  readonly summary: string;
  readonly details: readonly string[];
}

export function explainChoice(job: ClassAd, sites: readonly CandidateSite[], now: number): Explanation {
  const details = [...onProbation(job, sites, now), ...turnedAway(job, sites, now)];
  const suitors = suitorsOf(job, sites, new Matchmaker({ now }));
  if (suitors.length === 0) return { summary: `None of ${count(sites.length)} would run it.`, details };
  const tallies = new Tallies(sites);
  const open = suitors.filter(({ site }) => tallies.available(site, cpusOf(job)) > 0);
  const names = suitors.map(({ site }) => site.name).join(', ');
  if (open.length > 0) return { summary: `It is about to be sent to a site: ${names}.`, details };
  return { summary: `It waits here until a suitable site can take more: ${names}.`, details };
}

/** Which sites would take the job but get only one at a time, because jobs failed there. */
function onProbation(job: ClassAd, sites: readonly CandidateSite[], now: number): string[] {
  const suitors = suitorsOf(job, sites, new Matchmaker({ now }));
  return suitors.flatMap(({ site: { name, load } }) => {
    if (load.probationUntil === undefined) return [];
    const until = clockText(load.probationUntil, now);
    return [
      `Site ${name} is on probation until ${until}: it failed ${counted(load.failures, 'job')} within the last hour, and gets one job at a time.`,
    ];
  });
}

/** Where a flooded job waits. `candidates`: its open ones; `refused`: sites that refused it, and what they said. */
export function explainFlood(
  job: ClassAd,
  sites: readonly CandidateSite[],
  candidates: readonly { readonly site: string; readonly state: CandidateState; readonly message: string }[],
  refused: readonly { readonly site: string; readonly message: string }[],
  now: number,
): Explanation {
  const open = candidates.filter(({ state }) => state !== 'withdrawing');
  const details = [
    ...candidates.map(
      ({ site, state, message }) => `${site}: ${WHERE[state]}${message === '' ? '' : `; it says ${message}`}.`,
    ),
    ...refused.map(({ site, message }) => `${site} refused it: ${message}`),
    ...turnedAway(job, sites, now),
  ];
  if (open.length === 0) {
    const { summary } = explainChoice(job, sites, now);
    return { summary: `It will be queued at several sites, but is at none yet. ${summary}`, details };
  }
  const names = open.map(({ site }) => site).join(', ');
  return { summary: `It is queued at ${count(open.length)}, and runs where it can start first: ${names}.`, details };
}

const WHERE: Readonly<Record<CandidateState, string>> = {
  preparing: 'its files are being sent there',
  prepared: 'it is about to be submitted there',
  waiting: 'it waits in the queue there',
  withdrawing: 'it is being withdrawn there',
};

/** Which clauses of its Requirements ruled out which sites. */
export function turnedAway(job: ClassAd, sites: readonly CandidateSite[], now: number): string[] {
  const analysis = analyze(
    job,
    sites.map(({ ad }) => ad),
    { now },
  );
  if (analysis.matching === sites.length) return [];
  const matchmaker = new Matchmaker({ now });
  const lines = explain(analysis, 'site').trimEnd().split('\n');
  const by = (accepts: (site: CandidateSite) => boolean, message: string): string[] => {
    const names = sites.filter((site) => !accepts(site)).map(({ name }) => name);
    return names.length === 0 ? [] : [`${message}: ${names.join(', ')}.`];
  };
  return [
    ...lines,
    ...by(({ ad }) => matchmaker.accepts(job, ad), "Rejected by the job's Requirements"),
    ...by(({ ad }) => !matchmaker.accepts(job, ad) || matchmaker.accepts(ad, job), 'Reject the job'),
  ];
}

function count(sites: number): string {
  return sites === 1 ? '1 site' : `${sites} sites`;
}
