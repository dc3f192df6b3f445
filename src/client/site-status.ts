import { newestBySite } from '../broker/known-sites.ts';
import { siteBackoffs } from '../broker/site-backoff.ts';
import { type BackoffView, type ConnectionView, SITE_STATUS } from '../queue/tables.ts';
import { gramSite, type SiteRecord } from '../config/sites.ts';
import type { GryphusError } from '../errors.ts';
import { HAS_PLACE, hasPlace } from '../job/work-loops.ts';
import { JOB_STATUS, LIFE } from '../job/life.ts';
import type { CandidatePlace, Place, Queue } from '../queue/api.ts';
import type { SiteStatus } from './types.ts';

export async function connectionOf(queue: Queue, manager: string, site: string): Promise<ConnectionView | undefined> {
  return SITE_STATUS.get(queue.kv, `${manager}/${site}`);
}

/** Every configured site, its connection, and our jobs there. */
export async function siteStatuses(
  queue: Queue,
  records: ReadonlyMap<string, SiteRecord>,
  problems: ReadonlyMap<string, GryphusError> = new Map(),
): Promise<SiteStatus[]> {
  const { places } = await queue.totals();
  const candidates = await queue.candidates.places();
  const views = newestBySite(await SITE_STATUS.list(queue.kv), (one) => one.since);
  const backoff = await siteBackoffs(queue.kv);
  // A GRAM service without a file is shown only while it has jobs.
  const others = new Set(places.map(({ site }) => site).filter((site) => !records.has(site)));
  const services = [...others].flatMap((site) => gramSite(site) ?? []);
  const unreadable = [...problems].map(([name, { message }]): SiteStatus => {
    const view = { connection: 'refused', message, since: Date.now() } as const;
    return statusOf({ name, url: '?', batch: '?' }, view, undefined, places, candidates);
  });
  return [
    ...[...records.values(), ...services].map((record) =>
      statusOf(record, views.get(record.name), backoff.get(record.name), places, candidates),
    ),
    ...unreadable,
  ];
}

function connectionMessage({ message, trouble }: ConnectionView): string {
  return message === '' ? (trouble ?? '') : message;
}

function statusOf(
  record: Pick<SiteRecord, 'name' | 'url'> & { readonly batch: string },
  view: ConnectionView | undefined,
  backoff: BackoffView | undefined,
  places: readonly Place[],
  candidates: readonly CandidatePlace[],
): SiteStatus {
  const here = places.filter((place) => place.site === record.name);
  const sum = (wanted: (place: Place) => boolean) =>
    here.filter(wanted).reduce((total, place) => total + place.jobs, 0);
  const silent = (place: Place) => place.state.startsWith('unknown');
  const running = (place: Place) => !silent(place) && JOB_STATUS[LIFE[place.state].shows] === JOB_STATUS.running;
  return {
    name: record.name,
    url: record.url,
    batch: record.batch,
    connection: view?.connection ?? 'unused',
    ...(view && connectionMessage(view) !== '' ? { message: connectionMessage(view) } : {}),
    ...(view ? { since: view.since } : {}),
    ...(backoff?.learned === undefined
      ? {}
      : { learned: { jobs: backoff.learned.cap, message: backoff.learned.message, at: backoff.learned.at } }),
    ...(backoff?.outOfUse === undefined
      ? {}
      : { outOfUse: backoff.outOfUse.message, nextTry: backoff.outOfUse.probeAt }),
    idle: sum((place) => place.state === 'idle'),
    queuedThere:
      sum((place) => HAS_PLACE.includes(place.state) && !running(place) && !silent(place)) +
      candidates
        .filter((candidate) => candidate.site === record.name && hasPlace(candidate))
        .reduce((total, candidate) => total + candidate.candidates, 0),
    running: sum(running),
    unknown: sum(silent),
    sending: sum((place) => place.state === 'preparing'),
    fetching: sum((place) => place.state === 'finished'),
  };
}
