import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { HAS_PLACE } from '../gridmanager/lanes.ts';
import { openSite } from '../gridmanager/open-site.ts';
import { managerIdentity } from '../job/identity.ts';
import { type Attempt, type AttemptKey, formatAttemptKey, parseAttemptKey } from '../job/ids.ts';
import { isEnd, LIFE } from '../job/life.ts';
import type { JobManagerSite } from '../jobmanager/client.ts';
import type { SiteAudit } from '../jobmanager/site-report.ts';
import type { JobRecord, Queue } from '../queue/api.ts';
import type { AuditEntry } from './types.ts';

const NOBODY = () => Promise.resolve(undefined);

/** What the site holds that the queue does not know, and the reverse; found by tag, never by a batch system's id. */
export async function auditSite(queue: Queue, paths: Paths, record: SiteRecord, owner: string): Promise<AuditEntry[]> {
  const found: SiteAudit[] = [];
  await eachPlace(queue, paths, record, owner, async (site) => {
    const there = await site.audit();
    if (there.queueError !== undefined) {
      throw new GryphusError('site-busy', `Site ${record.name} cannot say what is in its queue: ${there.queueError}`, {
        suggestions: [`gryphus site test ${record.name}`],
      });
    }
    found.push(there);
  });
  const there = {
    records: found.flatMap(({ records }) => records),
    queued: found.flatMap(({ queued }) => queued),
  };
  return compare(queue, record, there);
}

/** One after the other, what each of our identities has at the site: a GridManager of its own, a directory of its own. */
async function eachPlace(
  queue: Queue,
  paths: Paths,
  record: SiteRecord,
  owner: string,
  look: (site: JobManagerSite) => Promise<void>,
): Promise<void> {
  const identities = new Set([managerIdentity(owner, undefined), managerIdentity(owner, record.credential)]);
  for (const { key } of await queue.kv.list('site-status')) {
    const cut = key.lastIndexOf('/');
    if (key.slice(cut + 1) === record.name) identities.add(key.slice(0, cut));
  }
  for (const identity of identities) {
    const site = await openSite(record, { agent: queue.agent, identity, prompt: NOBODY, paths });
    try {
      await look(site);
    } finally {
      await site.close();
    }
  }
}

type Held = Pick<SiteAudit, 'records' | 'queued'>;

async function compare(queue: Queue, record: SiteRecord, there: Held): Promise<AuditEntry[]> {
  const keys = new Set(keysOf(there));
  const entries: AuditEntry[] = [];
  for (const key of keys) {
    const entry = await strange(queue, key, there);
    if (entry) entries.push(entry);
  }
  for await (const job of queue.query({ site: record.name, states: PROMISED })) {
    const key = keyOf(queue, job);
    if (keys.has(key)) continue;
    entries.push({
      key,
      where: 'queue-only',
      words: `job ${job.id.cluster}.${job.id.proc} is ${job.state} here; the site does not know it`,
      can: [],
    });
  }
  for (const { manager, bids } of await queue.bids.places()) {
    const open = bids > 0 ? await queue.bids.next({ manager, site: record.name, state: 'waiting' }) : [];
    for (const bid of open) {
      const key = keyOf(queue, bid);
      if (keys.has(key) || entries.some((entry) => entry.key === key)) continue;
      const words = `a bid of job ${bid.id.cluster}.${bid.id.proc} waits here for its start; the site does not know it`;
      entries.push({ key, where: 'queue-only', words, can: [] });
    }
  }
  return entries;
}

/** `clean`: the site withdraws and forgets the attempt. `adopt`: the job in the queue takes this attempt for its own. */
export async function settleOrphan(
  queue: Queue,
  paths: Paths,
  record: SiteRecord,
  owner: string,
  key: string,
  how: 'adopt' | 'clean',
): Promise<void> {
  const attempt = parseAttemptKey(key);
  if (!attempt || attempt.agent !== queue.agent)
    throw new GryphusError('bad-input', `'${key}' is no attempt of this agent.`);
  const [job] = await queue.get([attempt]);
  if (job && job.attempt === attempt.attempt && LIFE[job.state].does !== 'nothing') {
    throw new GryphusError('conflict', `Attempt ${key} is job ${attempt.cluster}.${attempt.proc}, which is cared for.`);
  }
  if (await isBid(queue, attempt)) {
    throw new GryphusError(
      'conflict',
      `Attempt ${key} is a bid of job ${attempt.cluster}.${attempt.proc}, which is cared for.`,
    );
  }
  if (how === 'adopt') {
    throw new GryphusError(
      'not-permitted',
      `Attempt ${key} cannot be adopted: its job is no longer in the queue in that attempt.`,
      {
        suggestions: [`gryphus site audit ${record.name} --clean ${key}`],
      },
    );
  }
  await eachPlace(queue, paths, record, owner, async (site) => {
    if (!keysOf(await site.audit()).includes(attemptKey(key))) return;
    for (const act of [site.cancel.bind(site), site.forget.bind(site)]) {
      const outcome = (await act([attemptKey(key)])).get(attemptKey(key));
      if (outcome && !outcome.ok)
        throw new GryphusError('site-refused', `Site ${record.name}: ${outcome.refusal.message}`);
    }
  });
}

/** The site must know of jobs in these states. */
const PROMISED = HAS_PLACE.filter((state) => LIFE[state].does === 'watch');

function keysOf(there: Held): AttemptKey[] {
  return [...there.records.map(({ key }) => key), ...there.queued.flatMap(({ key }) => key ?? [])];
}

async function strange(queue: Queue, key: AttemptKey, there: Held): Promise<AuditEntry | undefined> {
  const attempt = parseAttemptKey(key);
  if (!attempt || attempt.agent !== queue.agent) return undefined;
  if (await isBid(queue, attempt)) return undefined;
  const [job] = await queue.get([attempt]);
  const record = there.records.find((one) => one.key === key);
  const state = record ? record.state : 'in its queue without a record';
  if (!job)
    return {
      key,
      where: 'site-only',
      words: `${state} there; the queue has no job ${attempt.cluster}.${attempt.proc}`,
      can: ['clean'],
    };
  if (job.attempt !== attempt.attempt) {
    return {
      key,
      where: 'site-only',
      words: `${state} there; the job is in attempt ${job.attempt} now`,
      can: ['clean'],
    };
  }
  if (isEnd(job.state) || job.state === 'held' || job.state === 'idle') {
    return { key, where: 'site-only', words: `${state} there; the job is ${job.state} here`, can: ['clean'] };
  }
  return undefined;
}

/** One of several attempts of a flooded job. */
async function isBid(queue: Queue, { cluster, proc, attempt }: Attempt): Promise<boolean> {
  const [bids] = await queue.bids.of([{ cluster, proc }]);
  return bids?.open.some((bid) => bid.attempt === attempt) === true;
}

function keyOf(queue: Queue, job: Pick<JobRecord, 'id' | 'attempt'>): AttemptKey {
  return formatAttemptKey({ agent: queue.agent, ...job.id, attempt: job.attempt });
}

function attemptKey(key: string): AttemptKey {
  return key as AttemptKey;
}
