import type { SiteRecord } from '../config/sites.ts';
import { HAS_PLACE, hasPlace } from '../job/work-loops.ts';
import { JOB_STATUS, LIFE } from '../job/life.ts';
import type { CandidatePlace, Kv, Place, Queue } from '../queue/api.ts';
import type { Row } from '../queue/table.ts';
import { type Measures, SITE_CAPACITY, SITE_MEASURES, SITE_STATUS } from '../queue/tables.ts';
import { NOTHING_MEASURED } from './measures.ts';
import { siteBackoffs } from './site-backoff.ts';
import type { JobsThere, KnownSite } from './sites.ts';

/** What the configuration and the queue know about every site that may be given jobs. */
export async function knownSites(
  queue: Pick<Queue, 'kv' | 'totals' | 'candidates'>,
  records: ReadonlyMap<string, SiteRecord>,
): Promise<KnownSite[]> {
  const { places } = await queue.totals();
  const candidates = await queue.candidates.places();
  const capacityPolls = newestBySite(await SITE_CAPACITY.list(queue.kv), (one) => one.at);
  const views = newestBySite(await SITE_STATUS.list(queue.kv), (one) => one.since);
  const measures = new Map((await SITE_MEASURES.list(queue.kv)).map(({ key, value }) => [key, value]));
  const backoff = await siteBackoffs(queue.kv);
  return [...records.values()].map((record) => ({
    record,
    backoff: backoff.get(record.name) ?? {},
    capacityPoll: capacityPolls.get(record.name),
    connection: views.get(record.name),
    jobs: jobsThere(record.name, places, candidates),
    measures: measures.get(record.name) ?? NOTHING_MEASURED,
  }));
}

export async function measuresOf(kv: Kv, site: string): Promise<Measures> {
  return (await SITE_MEASURES.get(kv, site)) ?? NOTHING_MEASURED;
}

/** Keys are `<manager>/<site>`; if several managers know a site, the newest row counts. */
export function newestBySite<T>(rows: readonly Row<T>[], age: (one: T) => number): ReadonlyMap<string, T> {
  const found = new Map<string, T>();
  for (const { key, value } of rows) {
    const site = key.slice(key.lastIndexOf('/') + 1);
    const known = found.get(site);
    if (known === undefined || age(value) > age(known)) found.set(site, value);
  }
  return found;
}

function jobsThere(site: string, places: readonly Place[], candidates: readonly CandidatePlace[]): JobsThere {
  const sum = (wanted: (place: Place) => boolean) =>
    places.filter((place) => place.site === site && wanted(place)).reduce((total, { jobs }) => total + jobs, 0);
  const runs = ({ state }: Place) => JOB_STATUS[LIFE[state].shows] === JOB_STATUS.running;
  return {
    here: sum(({ state }) => state === 'idle'),
    queued:
      sum((place) => HAS_PLACE.includes(place.state) && !runs(place)) +
      candidates
        .filter((candidate) => candidate.site === site && hasPlace(candidate))
        .reduce((total, candidate) => total + candidate.candidates, 0),
    running: sum(runs),
  };
}
