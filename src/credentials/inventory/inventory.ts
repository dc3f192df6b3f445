import { type Credentials, loadCredentials } from '../../config/credentials.ts';
import { allocationOf, needsOf } from '../../config/credential-needs.ts';
import type { Paths } from '../../config/paths.ts';
import { SiteBook } from '../../config/follow.ts';
import type { SiteRecord } from '../../config/sites.ts';
import { inspect, type Source, undescribed } from '../sources.ts';
import { CREDENTIAL_HOLD, type RemoteCopy, type Watched, type WatchedJob } from '../watch/model.ts';
import { LIFE, type State, STATES } from '../../job/life.ts';
import { readNumber, type TextSource } from '../../job/values.ts';
import type { JobRecord, Place, Queue } from '../../queue/api.ts';
import { CREDENTIAL_COPIES } from '../../queue/tables.ts';

/**
 * Which jobs use which credential, by the queue and the configuration. The credentials themselves are inspected later.
 */
export interface CredentialInventory {
  readonly sources: ReadonlyMap<string, Source>;
  /** Credentials whose configuration cannot be read: name and problem. */
  readonly bad: ReadonlyMap<string, string>;
  readonly jobs: readonly WatchedJob[];
  /** The configuration that it was made from. */
  readonly from: Configured;
}

/** The configuration of credentials, as text, and of sites: the same objects as long as their files have not changed. */
interface Configured {
  readonly credentials: string;
  readonly sites: readonly SiteRecord[];
}

type InventoryQueue = Pick<Queue, 'totals' | 'query' | 'kv'>;

/** `known`: an earlier one, since which no job has changed; it is returned if the configuration has not either. */
export async function inventory(
  queue: InventoryQueue,
  paths: Paths,
  loadSites: () => Promise<ReadonlyMap<string, SiteRecord>> = () => new SiteBook(paths).sites(),
  known?: CredentialInventory,
): Promise<CredentialInventory> {
  const [credentials, sites] = await Promise.all([loadCredentials(paths), loadSites()]);
  const from = {
    credentials: JSON.stringify([[...credentials.good], [...credentials.bad]]),
    sites: [...sites.values()],
  };
  if (known && isSame(known.from, from)) return known;
  const { places } = await queue.totals();
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
  return { sources, bad: credentials.bad, jobs, from };
}

function isSame(one: Configured, other: Configured): boolean {
  const same = one.credentials === other.credentials && one.sites.length === other.sites.length;
  return same && one.sites.every((site, i) => site === other.sites[i]);
}

/** The current state of every credential in an inventory. */
export function inspectAll({ sources, bad }: Pick<CredentialInventory, 'sources' | 'bad'>): Watched[] {
  return [...[...sources.values()].map(inspect), ...[...bad].map(([name, problem]) => undescribed(name, problem))];
}

/** The copies of credentials that the GridManagers sent to sites. */
export async function remoteCopies(queue: InventoryQueue): Promise<RemoteCopy[]> {
  return (await CREDENTIAL_COPIES.list(queue.kv)).map(({ key, value }) => {
    const [, site = '', ...name] = key.split('\t');
    return { credential: name.join('\t'), site, version: value.version };
  });
}

/** Whether a job is held by us, with one of our own subcodes. Any other hold, above all a user's, is never undone. */
export function isHeldByUs(attrs: TextSource): boolean {
  const { code, ended, unusable, early } = CREDENTIAL_HOLD;
  const subCode = readNumber(attrs, 'HoldReasonSubCode');
  return readNumber(attrs, 'HoldReasonCode') === code && [ended, unusable, early].some((one) => one === subCode);
}

/** States in which a job has not been committed at its site, so that a hold does no harm. */
export const HOLDABLE: readonly State[] = ['idle', 'preparing'];
export const RELEASABLE: readonly State[] = ['held', 'holding'];
/**
 * States in which the site has, or may have, the job. If the answer to a commit was lost, a `prepared` job may be
 * running, and a hold would cancel it; so prepared jobs are not held, and the GridManager commits nothing with an
 * expired credential.
 */
const THERE: readonly State[] = STATES.filter((s) => s === 'prepared' || ['watch', 'fetch'].includes(LIFE[s].does));
const CONCERNED: readonly State[] = [...HOLDABLE, ...RELEASABLE, ...THERE];

/**
 * Places whose jobs may need a credential: their manager is named for a proxy (`owner+subject`, job/identity.ts), or
 * their site requires one. Jobs that need none are not even read.
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
