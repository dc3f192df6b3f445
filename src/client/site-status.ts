import * as z from 'zod';
import { type KnownManners, siteManners } from '../broker/site-manners.ts';
import { gramSite, type SiteRecord } from '../config/sites.ts';
import type { GryphusError } from '../errors.ts';
import { HAS_PLACE, hasPlace } from '../gridmanager/lanes.ts';
import { JOB_STATUS, LIFE } from '../job/life.ts';
import type { BidPlace, Place, Queue } from '../queue/api.ts';
import type { SiteStatus } from './types.ts';

/** What a GridManager says of a site's connection, in the queue under `site-status`. */
const VIEW = z.object({
  connection: z.enum(['unused', 'up', 'down', 'needs-login', 'refused']),
  words: z.string(),
  since: z.number(),
  /** A fault of ours that holds up work there. */
  trouble: z.optional(z.string()),
});
export type ConnectionView = z.infer<typeof VIEW>;

export async function connectionOf(queue: Queue, manager: string, site: string): Promise<ConnectionView | undefined> {
  const entry = await queue.kv.get('site-status', `${manager}/${site}`);
  return entry ? VIEW.parse(JSON.parse(entry.value)) : undefined;
}

/** Every configured site, how it answers, and our jobs there. */
export async function siteStatuses(
  queue: Queue,
  records: ReadonlyMap<string, SiteRecord>,
  problems: ReadonlyMap<string, GryphusError> = new Map(),
): Promise<SiteStatus[]> {
  const { places } = await queue.totals();
  const bids = await queue.bids.places();
  const views = new Map<string, ConnectionView>();
  for (const { key, value } of await queue.kv.list('site-status')) {
    const site = key.slice(key.lastIndexOf('/') + 1);
    const view = VIEW.parse(JSON.parse(value));
    const known = views.get(site);
    if (!known || view.since > known.since) views.set(site, view);
  }
  const manners = await siteManners(queue.kv);
  // A GRAM service that a job names without a file for it is shown while it has jobs.
  const others = new Set(places.map(({ site }) => site).filter((site) => !records.has(site)));
  const services = [...others].flatMap((site) => gramSite(site) ?? []);
  const unreadable = [...problems].map(([name, { message }]): SiteStatus => {
    const view = { connection: 'refused', words: message, since: Date.now() } as const;
    return statusOf({ name, url: '?', batch: '?' }, view, undefined, places, bids);
  });
  return [
    ...[...records.values(), ...services].map((record) =>
      statusOf(record, views.get(record.name), manners.get(record.name), places, bids),
    ),
    ...unreadable,
  ];
}

function wordsOf({ words, trouble }: ConnectionView): string {
  return words === '' ? (trouble ?? '') : words;
}

function statusOf(
  record: Pick<SiteRecord, 'name' | 'url'> & { readonly batch: string },
  view: ConnectionView | undefined,
  manners: KnownManners | undefined,
  places: readonly Place[],
  bids: readonly BidPlace[],
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
    ...(view && wordsOf(view) !== '' ? { words: wordsOf(view) } : {}),
    ...(view ? { since: view.since } : {}),
    ...(manners?.learned === undefined
      ? {}
      : { learned: { jobs: manners.learned.cap, words: manners.learned.words, at: manners.learned.at } }),
    ...(manners?.outOfUse === undefined ? {} : { outOfUse: manners.outOfUse.words, nextTry: manners.outOfUse.probeAt }),
    idle: sum((place) => place.state === 'idle'),
    queuedThere:
      sum((place) => HAS_PLACE.includes(place.state) && !running(place) && !silent(place)) +
      bids.filter((bid) => bid.site === record.name && hasPlace(bid)).reduce((total, bid) => total + bid.bids, 0),
    running: sum(running),
    unknown: sum(silent),
  };
}
