import { join } from 'node:path';
import type { Attrs } from '../job/attrs.ts';
import type { ClusterRecord, JobRecord, Queue, QueueOptions, Work } from './api.ts';
import { Attrs as Layer } from '../job/attrs.ts';
import { openCandidates } from './candidates.ts';
import { editCluster, route, transitionMany } from './changes.ts';
import { dagStream } from './dag-stream.ts';
import { cursor, lastId, notice, readEvents, subscribe, trimEvents } from './events.ts';
import { heads } from './heads.ts';
import { History } from './history.ts';
import { openKv } from './kv.ts';
import { divergence, queueMark, skipClusters } from './incarnation.ts';
import { acquireLease, leaseMarks, releaseLease, renewLease } from './leases.ts';
import { look } from './look.ts';
import { type Meta, openMeta, takeOver } from './meta.ts';
import { query, queryChunks } from './query.ts';
import { clusterIds, clusterRecords, getJobs, nextJobs, totals } from './read.ts';
import { readClusterAd } from './record.ts';
import { Connection } from './redis.ts';
import { FileCover } from './redis-cover.ts';
import { repairText, takeUnsaid } from './redis-repairs.ts';
import { restore } from './restore.ts';
import { NameTable, type QueueContext } from './context.ts';
import { materialize, submit } from './submit.ts';
import { snapshot } from './snapshot.ts';
import { settlePlace } from './state-place.ts';
import { summaries } from './summaries.ts';
import { crashPoint } from '../util/crash-point.ts';
import { isMarked } from '../util/marked-dir.ts';
import { noteStateVersion, refuseNewerState } from '../util/state-version.ts';
import { unwant, unwanted } from './unwant.ts';
import { forgetAllWork, WorkQueue } from './work.ts';

/** Jobs that `get` reads in one exchange. */
const CHUNK = 5000;

export async function open(options: QueueOptions): Promise<Queue> {
  refuseNewerState(options.stateDir);
  const starts = options.start !== 'never' && options.start !== 'await';
  if (starts && isMarked(options.stateDir)) await settlePlace(options.stateDir, options.leaving);
  const db = await Connection.open(options);
  const clock = options.clock ?? Date.now;
  const context: QueueContext = { db, names: new NameTable(db), now: () => Math.floor(clock()) };
  try {
    const meta = await openMeta(db, context.now, starts);
    noteStateVersion(options.stateDir);
    crashPoint('queue.noted');
    return assemble(context, meta, new History(context, options.stateDir), options.stateDir);
  } catch (thrown) {
    await db.close();
    throw thrown;
  }
}

function assemble(context: QueueContext, { agent, holder }: Meta, history: History, stateDir: string): Queue {
  const work = new Map<string, WorkQueue>();
  const cover = new FileCover(join(stateDir, 'redis'));
  return {
    agent,
    holder,
    takeOver: (whose, epoch) => takeOver(context.db, whose, epoch),
    where: context.db.where,
    submit: (input) => submit(context, input),
    materialize: (cluster, input) => materialize(context, cluster, input),
    unwant: (cluster, procs) => unwant(context, cluster, procs),
    unwanted: (cluster, from, to) => unwanted(context, cluster, from, to),
    unmaterialized: async () => clusterRecords(context, await clusterIds(context, 'late')),
    transition: async (change, lease) => {
      const [result] = await transitionMany(context, [change], lease);
      if (!result) throw new Error('The queue did not answer a change.');
      return result;
    },
    transitionMany: (changes, lease) => transitionMany(context, changes, lease),
    route: (ids, to, lease) => transitionMany(context, route(ids, to), lease),
    restore: (job) => restore(context, job),
    editCluster: (cluster, set) => editCluster(context, cluster, set),
    get: async (ids) => {
      const jobs: JobRecord[] = [];
      for (let from = 0; from < ids.length; from += CHUNK) {
        jobs.push(...(await getJobs(context, ids.slice(from, from + CHUNK))));
      }
      return jobs;
    },
    query: (wish = {}) => query(context, wish),
    queryChunks: (wish = {}) => queryChunks(context, wish),
    heads: (cluster) => heads(context, cluster),
    look: (wishes, limit) => look(context, history, wishes, limit),
    nextJobs: (place) => nextJobs(context, place),
    candidates: openCandidates(context),
    totals: () => totals(context),
    clusters: async () => clusterRecords(context, await clusterIds(context, 'clusters')),
    summaries: (clusters) => summaries(context, clusters),
    cluster: (cluster) => oneCluster(context, cluster),
    position: () => lastId(context),
    readEvents: (from, wish) => readEvents(context, from, wish),
    subscribe: (wish) => subscribe(context, wish),
    cursor: (name, startAt) => cursor(context, name, startAt),
    notice: (input) => notice(context, input),
    trimEvents: (keep) => trimEvents(context, keep),
    acquireLease: (name, ttlMs, wish) => acquireLease(context, name, ttlMs, wish),
    renewLease: (lease, ttlMs) => renewLease(context, lease, ttlMs),
    releaseLease: (lease) => releaseLease(context, lease),
    leaseMarks: (names) => leaseMarks(context, names),
    mark: () => queueMark(context.db),
    divergence: (seen) => divergence(context.db, seen),
    skipClusters: (upTo) => skipClusters(context.db, upTo),
    retire: (ids) => history.retire(ids),
    snapshot: () => snapshot(context.db, stateDir),
    coverFiles: () => coverFiles(context.db, cover, stateDir),
    cutHistory: () => history.cut(),
    history,
    dag: (manager) => dagStream(context, manager),
    kv: openKv(context),
    work: (name): Work => {
      const known = work.get(name) ?? new WorkQueue(context.db, name, () => work.delete(name));
      work.set(name, known);
      return known;
    },
    forgetAllWork: () => forgetAllWork(context.db),
    handOver: () => context.db.handOver(),
    close: async () => {
      await Promise.all([...work.values()].map((one) => one.close()));
      await context.db.close();
    },
  };
}

async function oneCluster(
  context: QueueContext,
  cluster: number,
): Promise<(ClusterRecord & { readonly attrs: Attrs }) | undefined> {
  const [record] = await clusterRecords(context, [cluster]);
  const ad = await context.db.run((redis) => redis.get(`${context.db.prefix}ad:${cluster}`));
  return record && ad !== null ? { ...record, attrs: new Layer(readClusterAd(ad, cluster)) } : undefined;
}

async function coverFiles(db: Connection, cover: FileCover, stateDir: string): Promise<readonly string[]> {
  if (db.shared) return [];
  await cover.look(async () => /^run_id:(\w+)/m.exec(await db.run((redis) => redis.info('server')))?.[1] ?? '');
  return takeUnsaid(stateDir).map(repairText);
}
