import type { JobId } from '../job/ids.ts';
import type { JobRecord, Query } from './api.ts';
import { answersOf, TEXTS } from './answers.ts';
import { clusterIds, clusterRecords, decodeJobs, getJobs, type Raw } from './read.ts';
import type { QueueContext } from './context.ts';

/** Jobs in one exchange. */
const CHUNK = 1000;
/** A cluster of up to this many jobs is read at once: a few megabytes. */
const WHOLE = 20_000;
/** Up to this many jobs are found through the indexes of their places; beyond that, by walking the clusters. */
const BY_PLACE = 50_000;

/** Jobs in the order of their ids, each once, read in chunks. Changes made in the meantime may or may not be seen. */
export async function* query(context: QueueContext, wish: Query): AsyncIterable<JobRecord> {
  for await (const jobs of queryChunks(context, wish)) yield* jobs;
}

export async function* queryChunks(context: QueueContext, wish: Query): AsyncIterable<readonly JobRecord[]> {
  let left = wish.limit ?? Number.POSITIVE_INFINITY;
  if (left <= 0) return;
  const owners = new Map<number, string>();
  for await (const jobs of chunks(context, wish)) {
    if (wish.owner !== undefined) {
      const unknown = [...new Set(jobs.map(({ id }) => id.cluster))].filter((n) => !owners.has(n));
      for (const { cluster, owner } of await clusterRecords(context, unknown)) owners.set(cluster, owner);
    }
    const some = jobs.filter((job) => matches(job, wish, owners)).slice(0, left);
    wish.looked?.(jobs.length);
    if (some.length > 0) yield some;
    left -= some.length;
    if (left <= 0) return;
  }
}

function matches(job: JobRecord, wish: Query, owners: ReadonlyMap<number, string>): boolean {
  return (
    (!wish.states || wish.states.includes(job.state)) &&
    (wish.manager === undefined || wish.manager === job.manager) &&
    (wish.site === undefined || wish.site === job.site) &&
    (wish.owner === undefined || owners.get(job.id.cluster) === wish.owner) &&
    (!wish.where || wish.where(job))
  );
}

async function* chunks(context: QueueContext, wish: Query): AsyncIterable<JobRecord[]> {
  const { clusters } = wish;
  const whole = new Set(clusters);
  const ids = wish.ids
    ? dedupe(wish.ids.filter(({ cluster }) => !whole.has(cluster)).sort(byId))
    : await idsByPlace(context, wish);
  if (ids) {
    for (let from = 0; from < ids.length; from += CHUNK) yield await getJobs(context, ids.slice(from, from + CHUNK));
  }
  if (clusters)
    yield* walk(
      context,
      [...whole].sort((a, b) => a - b),
      wish,
    );
  else if (!ids) yield* walk(context, await clusterIds(context, 'clusters'), wish);
}

function byId(a: JobId, b: JobId): number {
  return a.cluster - b.cluster || a.proc - b.proc;
}

function dedupe(sorted: readonly JobId[]): JobId[] {
  return sorted.filter((id, i) => i === 0 || byId(id, sorted[i - 1] ?? id) !== 0);
}

/**
 * The ids at one moment, so that a job that moves between places is found exactly once. `undefined` if the indexes of
 * places would not help.
 */
async function idsByPlace(context: QueueContext, wish: Query): Promise<JobId[] | undefined> {
  const { manager, site, states } = wish;
  if ((!states && manager === undefined && site === undefined) || wish.clusters) return undefined;
  const [m, s] = [await numberOf(context, manager), await numberOf(context, site)];
  if (m === undefined || s === undefined) return [];
  const found = await context.db.script('find', [BY_PLACE, m, s, ...(states ?? [])]);
  if (!Array.isArray(found)) return undefined;
  const ids: JobId[] = [];
  for (let i = 0; i + 1 < found.length; i += 2) ids.push({ cluster: Number(found[i]), proc: Number(found[i + 1]) });
  return ids.sort(byId);
}

/** '' if `name` is undefined, which matches any; `undefined` if no job was ever there. */
async function numberOf(context: QueueContext, name: string | undefined): Promise<string | undefined> {
  return name === undefined ? '' : context.names.known(name);
}

/** Reads small clusters many at a time, large ones in slices of procs. */
async function* walk(context: QueueContext, clusters: readonly number[], wish: Query): AsyncIterable<JobRecord[]> {
  for (let from = 0; from < clusters.length; from += CHUNK) {
    const some = clusters.slice(from, from + CHUNK);
    const visible = (await clusterRecords(context, some)).filter(
      (c) => wish.owner === undefined || c.owner === wish.owner,
    );
    let small: number[] = [];
    let size = 0;
    for (const { cluster, counts, nextProc } of visible) {
      const jobs = Object.values(counts).reduce((sum, n) => sum + n, 0);
      if (size + jobs > CHUNK && small.length > 0) {
        yield* whole(context, small);
        [small, size] = [[], 0];
      }
      if (jobs > WHOLE) {
        for await (const ids of slices(context, cluster, nextProc, jobs)) yield await getJobs(context, ids);
      } else if (jobs > 0) {
        small.push(cluster);
        size += jobs;
      }
    }
    if (small.length > 0) yield* whole(context, small);
  }
}

async function* slices(context: QueueContext, cluster: number, nextProc: number, jobs: number): AsyncIterable<JobId[]> {
  // If most procs are gone, listing the existing ones is cheaper than asking for every number.
  const procs =
    jobs * 4 < nextProc
      ? (await context.db.run((redis) => redis.hkeys(`${context.db.prefix}j:${cluster}`)))
          .map(Number)
          .sort((a, b) => a - b)
      : undefined;
  const end = procs?.length ?? nextProc;
  for (let at = 0; at < end; at += CHUNK) {
    const length = Math.min(CHUNK, end - at);
    yield Array.from({ length }, (_, i) => ({ cluster, proc: procs?.[at + i] ?? at + i }));
  }
}

async function* whole(context: QueueContext, clusters: readonly number[]): AsyncIterable<JobRecord[]> {
  const answers = await context.db.run(async (redis) => {
    const pipeline = redis.pipeline();
    // Called by its bare name, so that the answer stays a flat list; an object of 10,000 fields would only be taken
    // apart again.
    for (const cluster of clusters) pipeline.call('HGETALL', `${context.db.prefix}j:${cluster}`);
    return answersOf(TEXTS, await pipeline.exec());
  });
  const raws: Raw[] = [];
  for (const [i, cluster] of clusters.entries()) {
    const answer = answers[i] ?? [];
    for (let at = 0; at + 1 < answer.length; at += 2)
      raws.push({ id: { cluster, proc: Number(answer[at]) }, value: answer[at + 1] ?? '' });
  }
  raws.sort((a, b) => byId(a.id, b.id));
  for (let from = 0; from < raws.length; from += CHUNK) yield await decodeJobs(context, raws.slice(from, from + CHUNK));
}
