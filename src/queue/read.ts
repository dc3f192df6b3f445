import { answersOf, FIELDS, TEXTS_OR_NONE, textsOf } from './answers.ts';
import { Attrs } from '../job/attrs.ts';
import type { JobId } from '../job/ids.ts';
import { STATES, type State } from '../job/life.ts';
import type { ClusterRecord, JobRecord, Place, QueueTotals } from './api.ts';
import { decodeJob, type NamesByNumber, parseJob, readClusterAd, stateNamed, type StoredJob } from './record.ts';
import type { QueueContext } from './context.ts';

/** One job as read from Redis, not yet decoded. */
export interface Raw {
  readonly id: JobId;
  readonly value: string;
}

/** A job taken apart, with its cluster's ad. */
export interface Opened {
  readonly id: JobId;
  readonly stored: StoredJob;
  readonly cluster: Attrs;
}

/** Decodes jobs with their clusters' ads, reading each ad once. */
export async function decodeJobs(context: QueueContext, raws: readonly Raw[]): Promise<JobRecord[]> {
  const opened = await openJobs(context, raws);
  const names = await namesOf(context, opened);
  return opened.map(({ id, stored, cluster }) => decodeJob(id, stored, cluster, names));
}

/** The names of their managers and sites. */
export function namesOf(context: QueueContext, jobs: readonly Opened[]): Promise<NamesByNumber> {
  const numbers = new Set<string>();
  for (const { stored } of jobs) numbers.add(stored.manager).add(stored.site);
  return context.names.names(numbers);
}

/** Jobs whose cluster is gone are omitted. */
async function openJobs(context: QueueContext, raws: readonly Raw[]): Promise<Opened[]> {
  if (raws.length === 0) return [];
  const clusters = [...new Set(raws.map(({ id }) => id.cluster))];
  const ads = await context.db.run((redis) => redis.mget(clusters.map((n) => `${context.db.prefix}ad:${n}`)));
  const shared = new Map<number, Attrs>();
  for (const [i, cluster] of clusters.entries()) {
    const ad = ads[i];
    if (typeof ad === 'string') shared.set(cluster, new Attrs(readClusterAd(ad, cluster)));
  }
  const jobs: Opened[] = [];
  for (const { id, value } of raws) {
    const cluster = shared.get(id.cluster);
    if (cluster) jobs.push({ id, stored: parseJob(id, value), cluster });
  }
  return jobs;
}

/** In the order of `ids`; jobs that do not exist, or are not visible yet, are omitted. */
export async function getJobs(context: QueueContext, ids: readonly JobId[]): Promise<JobRecord[]> {
  return decodeJobs(context, await readJobs(context, ids));
}

/** The same, without making records of them. */
export async function getOpened(context: QueueContext, ids: readonly JobId[]): Promise<Opened[]> {
  return openJobs(context, await readJobs(context, ids));
}

async function readJobs(context: QueueContext, ids: readonly JobId[]): Promise<Raw[]> {
  const wanted = new Map<number, number[]>();
  for (const { cluster, proc } of ids) {
    const procs = wanted.get(cluster);
    if (procs) procs.push(proc);
    else wanted.set(cluster, [proc]);
  }
  const values = new Map<number, Map<number, string>>();
  const asked = [...wanted];
  const answers = await context.db.run(async (redis) => {
    const pipeline = redis.pipeline();
    for (const [cluster, procs] of asked) pipeline.hmget(`${context.db.prefix}j:${cluster}`, ...procs.map(String));
    return answersOf(TEXTS_OR_NONE, await pipeline.exec());
  });
  for (const [i, [cluster, procs]] of asked.entries()) {
    const mine = new Map<number, string>();
    values.set(cluster, mine);
    for (const [n, proc] of procs.entries()) {
      const value = answers[i]?.[n];
      if (typeof value === 'string') mine.set(proc, value);
    }
  }
  const raws: Raw[] = [];
  for (const id of ids) {
    const value = values.get(id.cluster)?.get(id.proc);
    if (value !== undefined) raws.push({ id, value });
  }
  return raws;
}

export async function nextJobs(
  context: QueueContext,
  place: { readonly manager: string; readonly site: string; readonly state?: State; readonly limit: number },
): Promise<JobRecord[]> {
  const numbers = await context.names.numbers([place.manager, place.site]);
  const found = textsOf(
    await context.db.script('next', [
      numbers.get(place.manager) ?? '0',
      numbers.get(place.site) ?? '0',
      place.state ?? 'idle',
      place.limit,
    ]),
  );
  const raws: Raw[] = [];
  for (let i = 0; i + 2 < found.length; i += 3) {
    raws.push({ id: { cluster: Number(found[i]), proc: Number(found[i + 1]) }, value: found[i + 2] ?? '' });
  }
  return decodeJobs(context, raws);
}

/** From counters that every transition updates, so the cost does not grow with the queue. */
export async function totals(context: QueueContext): Promise<QueueTotals> {
  const counts = Object.entries(await context.db.run((redis) => redis.hgetall(`${context.db.prefix}places`)));
  const names = await context.names.names(counts.flatMap(([place]) => place.split(':', 2)));
  const states = Object.fromEntries(STATES.map((state) => [state, 0])) as Record<State, number>;
  const places: Place[] = [];
  let jobs = 0;
  for (const [place, count] of counts) {
    const [manager = '0', site = '0', ...rest] = place.split(':');
    const state = stateNamed(rest.join(':'));
    if (state === undefined) continue;
    const n = Number(count);
    jobs += n;
    states[state] += n;
    places.push({ manager: names.get(manager) ?? '', site: names.get(site) ?? '', state, jobs: n });
  }
  return { jobs, states, places };
}

export async function clusterIds(context: QueueContext, key: 'clusters' | 'late'): Promise<number[]> {
  return (await context.db.run((redis) => redis.zrange(context.db.prefix + key, 0, '-1'))).map(Number);
}

/** Records of clusters; those that no longer exist are omitted. */
export async function clusterRecords(context: QueueContext, clusters: readonly number[]): Promise<ClusterRecord[]> {
  const records: ClusterRecord[] = [];
  for (let from = 0; from < clusters.length; from += 1000) {
    const some = clusters.slice(from, from + 1000);
    const answers = await context.db.run(async (redis) => {
      const pipeline = redis.pipeline();
      for (const cluster of some) pipeline.hgetall(`${context.db.prefix}c:${cluster}`);
      return answersOf(FIELDS, await pipeline.exec());
    });
    for (const [i, cluster] of some.entries()) {
      const fields = answers[i];
      if (fields?.['token'] !== undefined) records.push(clusterRecord(cluster, fields));
    }
  }
  return records;
}

function clusterRecord(cluster: number, fields: Readonly<Record<string, string>>): ClusterRecord {
  const counts: Partial<Record<State, number>> = {};
  for (const [name, count] of Object.entries(fields)) {
    const state = name.startsWith('#') ? stateNamed(name.slice(name.lastIndexOf(':') + 1)) : undefined;
    if (state !== undefined) counts[state] = (counts[state] ?? 0) + Number(count);
  }
  return {
    cluster,
    owner: fields['owner'] ?? '',
    batchName: fields['batch'] ?? '',
    submitted: Number(fields['at']),
    counts,
    nextProc: Number(fields['next']),
    ...(fields['digest'] !== undefined && { digest: fields['digest'] }),
    total: Number(fields['total']),
  };
}
