import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { batchIdOf } from '../job/batch-id.ts';
import { HAS_PLACE } from '../job/work-loops.ts';
import { openSite } from '../open-site/open-site.ts';
import { managerIdentity } from '../job/identity.ts';
import { type AttemptId, type AttemptKey, formatAttemptKey, formatJobId, parseAttemptKey } from '../job/ids.ts';
import { isEnd, LIFE } from '../job/life.ts';
import type { AuditableSite, AuditJob, SiteAudit } from '../site/audit.ts';
import type { HistoryRecord, JobRecord, Queue } from '../queue/api.ts';
import { SITE_STATUS } from '../queue/tables.ts';
import { adopt, type Orphan, unadoptable } from './adopt.ts';
import type { AuditedAttempt, AuditEntry, OtherAgents } from './types.ts';
import { withdraw } from './withdraw.ts';

const NOBODY = () => Promise.resolve(undefined);

/**
 * What the site holds that the queue does not know, and the reverse; matched by tag, never by a batch system's id. Site
 * and queue cannot be read at the same moment, so a difference counts only if a second look at both finds it again. By
 * then anything that was merely in transit has settled, since the site forgets an attempt before the queue drops it,
 * and knows an attempt before the queue says so.
 */
export async function auditSite(queue: Queue, paths: Paths, record: SiteRecord, owner: string): Promise<AuditEntry[]> {
  const look = async () => {
    const found = await holdings(queue, paths, record, owner);
    return { differences: await compare(queue, record, heldOf(found)), others: othersOf(queue.agent, found) };
  };
  const { differences, others } = await look();
  if (differences.length === 0) return others;
  const again = await look();
  const stayed = again.differences.filter(({ key, where }) =>
    differences.some((entry) => entry.key === key && entry.where === where),
  );
  return [...stayed, ...again.others];
}

async function holdings(queue: Queue, paths: Paths, record: SiteRecord, owner: string): Promise<SiteAudit[]> {
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
  return found;
}

function heldOf(found: readonly SiteAudit[]): Held {
  return {
    records: found.flatMap(({ records }) => records),
    queued: found.flatMap(({ queued }) => queued),
  };
}

/** Other agents, as shown by the directories next to ours and the tags in the site's queue. */
function othersOf(agent: string, found: readonly SiteAudit[]): OtherAgents[] {
  const others = new Map<string, OtherAgents>();
  for (const { agent: name, attempts: jobs, ended, oldest, newest } of found.flatMap((one) => one.others))
    others.set(name, { where: 'other-agent', agent: name, jobs, ended, queued: 0, oldest, newest });
  const queued = new Map<string, Set<string>>();
  for (const { key, over } of found.flatMap((one) => one.queued)) {
    const name = over || key === undefined ? undefined : parseAttemptKey(key)?.agent;
    if (name === undefined || name === agent) continue;
    queued.set(name, (queued.get(name) ?? new Set()).add(key ?? ''));
  }
  for (const [name, { size }] of queued) {
    const known = others.get(name) ?? { where: 'other-agent', agent: name, jobs: 0, ended: 0 };
    others.set(name, { ...known, jobs: Math.max(known.jobs, known.ended + size), queued: size });
  }
  return [...others.values()];
}

/** What each of our identities has at the site, one after the other; each has its own GridManager and directory. */
async function eachPlace(
  queue: Queue,
  paths: Paths,
  record: SiteRecord,
  owner: string,
  look: (site: AuditableSite, identity: string) => Promise<void>,
): Promise<void> {
  const identities = new Set([managerIdentity(owner, undefined), managerIdentity(owner, record.credential)]);
  for (const { key } of await SITE_STATUS.list(queue.kv)) {
    const cut = key.lastIndexOf('/');
    if (key.slice(cut + 1) === record.name) identities.add(key.slice(0, cut));
  }
  for (const identity of identities) {
    const site = await openSite(record, { agent: queue.agent, identity, prompt: NOBODY, paths, holder: queue.holder });
    try {
      await look(site, identity);
    } finally {
      await site.close();
    }
  }
}

type Held = Pick<SiteAudit, 'records' | 'queued'>;

async function compare(queue: Queue, record: SiteRecord, there: Held): Promise<AuditedAttempt[]> {
  const keys = new Set(keysOf(there));
  const nameless = new Map(namelessOf(queue.agent, there).map((job) => [job.batchId, job]));
  const entries: AuditedAttempt[] = (await strangers(queue, [...keys], there)).map(entryOf);
  for await (const job of queue.query({ site: record.name, states: PROMISED })) {
    const key = keyOf(queue, job);
    if (keys.has(key) || nameless.delete(batchIdOf(job.attrs) ?? '')) continue;
    entries.push({
      key,
      where: 'queue-only',
      message: `job ${job.id.cluster}.${job.id.proc} is ${job.state} here; the site does not know it`,
      can: [],
    });
  }
  for (const { manager, candidates } of await queue.candidates.places()) {
    const open = candidates > 0 ? await queue.candidates.next({ manager, site: record.name, state: 'waiting' }) : [];
    for (const candidate of open) {
      const key = keyOf(queue, candidate);
      if (keys.has(key) || entries.some((entry) => entry.key === key)) continue;
      const message = `a candidate of job ${candidate.id.cluster}.${candidate.id.proc} is waiting to start; the site does not know it`;
      entries.push({ key, where: 'queue-only', message, can: [] });
    }
  }
  for (const { tag, batchId } of nameless.values()) {
    const message = `an element of an array, in its queue as ${batchId} without a record there`;
    entries.push({ key: tag, where: 'site-only', message, can: ['clean'] });
  }
  return entries;
}

/** `clean`: the site withdraws and forgets the attempt. `adopt`: the job takes it over again. */
export async function settleOrphan(
  queue: Queue,
  paths: Paths,
  record: SiteRecord,
  owner: string,
  key: string,
  how: 'adopt' | 'clean',
): Promise<void> {
  const attempt = parseAttemptKey(key);
  if (!attempt && how === 'clean' && key.startsWith(`gryphus.${queue.agent}.`))
    return removeNameless(queue, paths, record, owner, key);
  if (!attempt || attempt.agent !== queue.agent)
    throw new GryphusError('bad-input', `'${key}' is not an attempt of this agent.`);
  const [job] = await queue.get([attempt]);
  if (job && job.attempt === attempt.attempt && LIFE[job.state].does !== 'nothing') {
    throw new GryphusError(
      'conflict',
      `Attempt ${key} is job ${attempt.cluster}.${attempt.proc}, which is being handled.`,
    );
  }
  if (await isCandidate(queue, attempt)) {
    throw new GryphusError(
      'conflict',
      `Attempt ${key} is a candidate of job ${attempt.cluster}.${attempt.proc}, which is being handled.`,
    );
  }
  let found = false;
  await eachPlace(queue, paths, record, owner, async (site, identity) => {
    const there = await site.audit();
    if (!keysOf(there).includes(attemptKey(key))) return;
    found = true;
    if (how === 'clean') {
      await withdraw(site, record.name, attemptKey(key));
      // Without a record, the site knows it only by its tag.
      if (!there.records.some((one) => one.key === key)) await site.prune?.(tagsOf(there, (job) => job.key === key));
      return;
    }
    const [orphan] = await strangers(queue, [attemptKey(key)], there);
    if (!orphan) throw new GryphusError('conflict', `Attempt ${key} is being handled.`);
    await adopt(queue, orphan, identity, record.name);
  });
  if (!found) throw new GryphusError('not-found', `Site ${record.name} does not have attempt ${key} any more.`);
}

async function removeNameless(
  queue: Queue,
  paths: Paths,
  record: SiteRecord,
  owner: string,
  tag: string,
): Promise<void> {
  let found = false;
  await eachPlace(queue, paths, record, owner, async (site) => {
    const tags = tagsOf(await site.audit(), (job) => job.tag === tag);
    if (found || tags.length === 0) return;
    found = true;
    await site.prune?.(tags);
  });
  if (!found) throw new GryphusError('not-found', `Site ${record.name} does not have ${tag} any more.`);
}

function tagsOf(there: Held, wanted: (job: AuditJob) => boolean): string[] {
  return there.queued.filter((job) => !job.over && wanted(job)).map(({ tag }) => tag);
}

/** Elements of our arrays whose map is lost: only the batch system's id leads to their jobs. */
function namelessOf(agent: string, there: Held): AuditJob[] {
  // Each of our directories there has the maps of its own arrays.
  const named = new Set(there.queued.filter(({ key }) => key !== undefined).map(({ batchId }) => batchId));
  return there.queued.filter(
    ({ key, over, tag, batchId }) =>
      key === undefined && !over && tag.startsWith(`gryphus.${agent}.`) && !named.has(batchId),
  );
}

/** States in which the site must know the job. */
const PROMISED = HAS_PLACE.filter((state) => LIFE[state].does === 'watch');

/** Batch systems show a job for some minutes after its end; such entries need no attention. */
function keysOf(there: Held): AttemptKey[] {
  const queued = there.queued.filter(({ over }) => !over);
  return [...there.records.map(({ key }) => key), ...queued.flatMap(({ key }) => key ?? [])];
}

/** What the site holds that no job here accounts for. */
async function strangers(queue: Queue, keys: readonly AttemptKey[], there: Held): Promise<Orphan[]> {
  const records = new Map(there.records.map((record) => [record.key, record]));
  const attempts = [...new Set(keys)].flatMap((key) => {
    const attempt = parseAttemptKey(key);
    return attempt?.agent === queue.agent ? [{ key, attempt }] : [];
  });
  const ids = attempts.map(({ attempt: { cluster, proc } }) => ({ cluster, proc }));
  const candidates = new Set(
    (await queue.candidates.of(ids)).flatMap(({ id, open }) =>
      open.map((candidate) => keyOf(queue, { id, attempt: candidate.attempt })),
    ),
  );
  const jobs = new Map<string, JobRecord>();
  const past = new Map<string, HistoryRecord>();
  for await (const sighting of queue.look([{ ids }])) {
    if (sighting.in === 'queue') for (const job of sighting.jobs) jobs.set(formatJobId(job.id), job);
    else for (const job of sighting.jobs) past.set(formatJobId(job.id), job);
  }
  return attempts.flatMap(({ key, attempt }) => {
    const name = formatJobId(attempt);
    const job = jobs.get(name);
    if (candidates.has(key) || (job?.attempt === attempt.attempt && !STRANDED(job))) return [];
    return [{ attempt, there: records.get(key), job, past: past.get(name) }];
  });
}

/** As far as we know, a job in one of these states has nothing at a site. */
const STRANDED = ({ state }: JobRecord) => isEnd(state) || state === 'held' || state === 'idle';

function entryOf(orphan: Orphan): AuditedAttempt {
  const { attempt, there, job, past } = orphan;
  const why = unadoptable(orphan);
  const here = job
    ? job.attempt === attempt.attempt
      ? `the job is ${job.state} here`
      : `the job is in attempt ${job.attempt} now`
    : past
      ? `job ${formatJobId(attempt)} has left the queue, ${past.state}`
      : `the queue has no job ${formatJobId(attempt)}`;
  return {
    key: formatAttemptKey(attempt),
    where: 'site-only',
    message: `${there?.state ?? 'in its queue without a record'} there; ${here}`,
    can: why === undefined ? ['adopt', 'clean'] : ['clean'],
    ...(why === undefined ? {} : { unadoptable: why }),
  };
}

/** One of several attempts of a flooded job. */
async function isCandidate(queue: Queue, { cluster, proc, attempt }: AttemptId): Promise<boolean> {
  const [candidates] = await queue.candidates.of([{ cluster, proc }]);
  return candidates?.open.some((candidate) => candidate.attempt === attempt) === true;
}

function keyOf(queue: Queue, job: Pick<JobRecord, 'id' | 'attempt'>): AttemptKey {
  return formatAttemptKey({ agent: queue.agent, ...job.id, attempt: job.attempt });
}

function attemptKey(key: string): AttemptKey {
  return key as AttemptKey;
}
