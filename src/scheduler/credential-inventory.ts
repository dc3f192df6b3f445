import { type Credentials, loadCredentials } from '../config/credentials.ts';
import { allocationOf, needsOf } from '../config/credential-needs.ts';
import type { Paths } from '../config/paths.ts';
import { SiteBook } from '../config/follow.ts';
import type { SiteRecord } from '../config/sites.ts';
import { inspect, type Source, undescribed } from '../credentials/sources.ts';
import { CREDENTIAL_HOLD, type RemoteCopy, type Watched, type WatchedJob } from '../credentials/watch/model.ts';
import { COPIES } from '../gridmanager/proxies.ts';
import { LIFE, type State, STATES } from '../job/life.ts';
import { readNumber, type TextSource } from '../job/values.ts';
import type { JobRecord, Place, Queue } from '../queue/api.ts';

/** Who uses which credential, as the queue and the configuration have it; how the credentials are is looked at later. */
export interface CredentialInventory {
  readonly sources: ReadonlyMap<string, Source>;
  /** Described in a way that cannot be read: name and problem. */
  readonly bad: ReadonlyMap<string, string>;
  readonly jobs: readonly WatchedJob[];
}

type InventoryQueue = Pick<Queue, 'totals' | 'query' | 'kv'>;

export async function inventory(
  queue: InventoryQueue,
  paths: Paths,
  loadSites: () => Promise<ReadonlyMap<string, SiteRecord>> = () => new SiteBook(paths).sites(),
): Promise<CredentialInventory> {
  const [credentials, sites, { places }] = await Promise.all([loadCredentials(paths), loadSites(), queue.totals()]);
  const sources = new Map<string, Source>(credentials.good);
  for (const site of sites.values()) {
    const allocation = allocationOf(site);
    if (allocation) sources.set(allocation.name, allocation);
  }
  const jobs: WatchedJob[] = [];
  for (const { manager, site } of concerned(places, sites)) {
    for await (const job of queue.query({ manager, site, states: CONCERNED })) {
      const found = watchedJob(job, sites.get(site), credentials);
      if (!found) continue;
      jobs.push(found.job);
      for (const source of found.sources) if (!sources.has(source.name)) sources.set(source.name, source);
    }
  }
  return { sources, bad: credentials.bad, jobs };
}

/** Every credential of a inventory as it is now. */
export function inspectAll({ sources, bad }: Pick<CredentialInventory, 'sources' | 'bad'>): Watched[] {
  return [...[...sources.values()].map(inspect), ...[...bad].map(([name, problem]) => undescribed(name, problem))];
}

/** What the GridManagers sent to sites. */
export async function remoteCopies(queue: InventoryQueue): Promise<RemoteCopy[]> {
  const entries = await queue.kv.list(COPIES);
  return entries.flatMap(({ key, value }) => {
    const [, site = '', ...name] = key.split('\t');
    const { version } = JSON.parse(value) as { version?: unknown };
    return typeof version === 'string' ? [{ credential: name.join('\t'), site, version }] : [];
  });
}

/** A job that we hold: held with our own sub codes. Another's hold, a user's above all, is never undone. */
export function isHeldByUs(attrs: TextSource): boolean {
  const { code, ended, unusable, early } = CREDENTIAL_HOLD;
  const subCode = readNumber(attrs, 'HoldReasonSubCode');
  return readNumber(attrs, 'HoldReasonCode') === code && [ended, unusable, early].some((one) => one === subCode);
}

/** States in which a job has not been promised to its site: held without harm. */
export const HOLDABLE: readonly State[] = ['idle', 'preparing'];
export const RELEASABLE: readonly State[] = ['held', 'holding'];
/**
 * The site has it or may have it: a commit whose answer was lost leaves a job `prepared` that runs, so such a job is not
 * held, for a hold would cancel it; the GridManager commits nothing with a dead credential.
 */
const THERE: readonly State[] = STATES.filter((s) => s === 'prepared' || ['watch', 'fetch'].includes(LIFE[s].does));
const CONCERNED: readonly State[] = [...HOLDABLE, ...RELEASABLE, ...THERE];

/**
 * Places whose jobs may need a credential: their manager is named for a proxy (`owner+subject`, job/identity.ts), or
 * their site wants one. A queue of jobs that need none costs no look at them.
 */
function concerned(
  places: readonly Place[],
  sites: ReadonlyMap<string, SiteRecord>,
): readonly Pick<Place, 'manager' | 'site'>[] {
  const found = new Map<string, Pick<Place, 'manager' | 'site'>>();
  for (const { manager, site, state, jobs } of places) {
    const record = sites.get(site);
    const wants = record?.credential !== undefined || record?.allocationEnd !== undefined;
    if (jobs > 0 && CONCERNED.includes(state) && (manager.includes('+') || wants))
      found.set(`${manager}\n${site}`, { manager, site });
  }
  return [...found.values()];
}

function watchedJob(
  job: JobRecord,
  site: SiteRecord | undefined,
  credentials: Credentials,
): { readonly job: WatchedJob; readonly sources: readonly Source[] } | undefined {
  const where = whereIs(job);
  const needs = where && needsOf(job.attrs, site, credentials);
  if (!where || !needs || needs.names.length === 0) return undefined;
  return { job: { id: job.id, site: job.site, needs: needs.names, where }, sources: needs.sources };
}

function whereIs({ state, attrs }: JobRecord): WatchedJob['where'] | undefined {
  if (HOLDABLE.includes(state)) return 'waiting';
  if (RELEASABLE.includes(state)) return isHeldByUs(attrs) ? 'held' : undefined;
  return THERE.includes(state) ? 'there' : undefined;
}
