import * as z from 'zod';
import type { SiteRecord } from '../config/sites.ts';
import { HAS_PLACE, hasPlace } from '../gridmanager/work-loops.ts';
import { CAPACITY_POLLS } from '../gridmanager/capacity-poll.ts';
import { JOB_STATUS, LIFE } from '../job/life.ts';
import type { CandidatePlace, Kv, KvEntry, Place, Queue } from '../queue/api.ts';
import { type Measures, NOTHING_MEASURED } from './measures.ts';
import { siteBackoffs } from './site-backoff.ts';
import type { JobsThere, KnownSite } from './sites.ts';

const MEASURES = 'site-measures';

const CAPACITY_POLL = z.object({
  at: z.number(),
  validUntil: z.number(),
  running: z.number(),
  host: z.string(),
  os: z.string(),
  arch: z.string(),
  freeDiskKb: z.number().optional(),
  batchVersion: z.string().optional(),
  cpus: z.number().optional(),
  freeCpus: z.number().optional(),
});
const VIEW = z.object({
  connection: z.enum(['unused', 'up', 'down', 'needs-login', 'refused']),
  message: z.string(),
  since: z.number(),
});
const MEASURED = z.object({
  wait: z.number().optional(),
  run: z.number().optional(),
  failures: z.array(z.number()),
});

/** What the configuration and the queue know about every site that may be given jobs. */
export async function knownSites(
  queue: Pick<Queue, 'kv' | 'totals' | 'candidates'>,
  records: ReadonlyMap<string, SiteRecord>,
): Promise<KnownSite[]> {
  const { places } = await queue.totals();
  const candidates = await queue.candidates.places();
  const capacityPolls = newest(await queue.kv.list(CAPACITY_POLLS), CAPACITY_POLL, (one) => one.at);
  const views = newest(await queue.kv.list('site-status'), VIEW, (one) => one.since);
  const measures = new Map((await queue.kv.list(MEASURES)).map((one) => [one.key, readMeasures(one)]));
  const backoff = await siteBackoffs(queue.kv);
  return [...records.values()].map((record) => ({
    record,
    backoff: backoff.get(record.name) ?? {},
    capacityPoll: capacityPolls.get(record.name) as KnownSite['capacityPoll'],
    connection: views.get(record.name),
    jobs: jobsThere(record.name, places, candidates),
    measures: measures.get(record.name) ?? NOTHING_MEASURED,
  }));
}

export async function measuresOf(kv: Kv, site: string): Promise<Measures> {
  const entry = await kv.get(MEASURES, site);
  return entry ? readMeasures(entry) : NOTHING_MEASURED;
}

export async function saveMeasures(kv: Kv, site: string, measures: Measures): Promise<void> {
  await kv.set(MEASURES, site, JSON.stringify(measures));
}

function readMeasures({ value }: KvEntry): Measures {
  return MEASURED.parse(JSON.parse(value)) as Measures;
}

/** Keys are `<manager>/<site>`; if several managers know a site, the newest entry counts. */
function newest<T>(entries: readonly KvEntry[], schema: z.ZodType<T>, age: (one: T) => number): ReadonlyMap<string, T> {
  const found = new Map<string, T>();
  for (const { key, value } of entries) {
    const site = key.slice(key.lastIndexOf('/') + 1);
    const one = schema.parse(JSON.parse(value));
    const known = found.get(site);
    if (known === undefined || age(one) > age(known)) found.set(site, one);
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
