import type { Attrs } from '../job/attrs.ts';
import type { ClusterRecord, JobRecord, Queue, QueueOptions, Work } from './api.ts';
import { Attrs as Layer, type AttrTexts } from '../job/attrs.ts';
import { openBids } from './bids.ts';
import { editCluster, route, transitionMany } from './changes.ts';
import { dagDesk } from './dag-desk.ts';
import { cursor, lastId, notice, readEvents, subscribe, trimEvents } from './events.ts';
import { History } from './history.ts';
import { openKv } from './kv.ts';
import { parting, queueMark, skipClusters } from './lives.ts';
import { acquireLease, leaseMark, releaseLease, renewLease } from './leases.ts';
import { look } from './look.ts';
import { openMeta } from './meta.ts';
import { query, queryChunks } from './query.ts';
import { clusterIds, clusterRecords, getJobs, nextJobs, totals } from './read.ts';
import { Connection } from './redis.ts';
import { restore } from './restore.ts';
import { NameTable, type Room } from './room.ts';
import { materialize, submit } from './submit.ts';
import { summaries } from './summaries.ts';
import { forgetAllWork, WorkQueue } from './work.ts';

/** Jobs that `get` asks for in one exchange. */
const CHUNK = 5000;

export async function open(options: QueueOptions): Promise<Queue> {
  const db = await Connection.open(options);
  const clock = options.clock ?? Date.now;
  const room: Room = { db, names: new NameTable(db), now: () => Math.floor(clock()) };
  try {
    return assemble(room, await openMeta(db), new History(room, options.stateDir));
  } catch (thrown) {
    await db.close();
    throw thrown;
  }
}

function assemble(room: Room, agent: string, history: History): Queue {
  const work = new Map<string, WorkQueue>();
  return {
    agent,
    where: room.db.where,
    submit: (input) => submit(room, input),
    materialize: (cluster, input) => materialize(room, cluster, input),
    unmaterialized: async () => clusterRecords(room, await clusterIds(room, 'late')),
    transition: async (change, lease) => {
      const [result] = await transitionMany(room, [change], lease);
      if (!result) throw new Error('The queue did not answer a change.');
      return result;
    },
    transitionMany: (changes, lease) => transitionMany(room, changes, lease),
    route: (ids, to, lease) => transitionMany(room, route(ids, to), lease),
    restore: (job) => restore(room, job),
    editCluster: (cluster, set) => editCluster(room, cluster, set),
    get: async (ids) => {
      const jobs: JobRecord[] = [];
      for (let from = 0; from < ids.length; from += CHUNK) {
        jobs.push(...(await getJobs(room, ids.slice(from, from + CHUNK))));
      }
      return jobs;
    },
    query: (wish = {}) => query(room, wish),
    queryChunks: (wish = {}) => queryChunks(room, wish),
    look: (wishes, limit) => look(room, history, wishes, limit),
    nextJobs: (place) => nextJobs(room, place),
    bids: openBids(room),
    totals: () => totals(room),
    clusters: async () => clusterRecords(room, await clusterIds(room, 'clusters')),
    summaries: (clusters) => summaries(room, clusters),
    cluster: (cluster) => oneCluster(room, cluster),
    position: () => lastId(room),
    readEvents: (from, wish) => readEvents(room, from, wish),
    subscribe: (wish) => subscribe(room, wish),
    cursor: (name, startAt) => cursor(room, name, startAt),
    notice: (input) => notice(room, input),
    trimEvents: (keep) => trimEvents(room, keep),
    acquireLease: (name, ttlMs, wish) => acquireLease(room, name, ttlMs, wish),
    renewLease: (lease, ttlMs) => renewLease(room, lease, ttlMs),
    releaseLease: (lease) => releaseLease(room, lease),
    leaseMark: (name) => leaseMark(room, name),
    mark: () => queueMark(room.db),
    parting: (seen) => parting(room.db, seen),
    skipClusters: (upTo) => skipClusters(room.db, upTo),
    retire: (ids) => history.retire(ids),
    history,
    dag: (manager) => dagDesk(room, manager),
    kv: openKv(room),
    work: (name): Work => {
      const known = work.get(name) ?? new WorkQueue(room.db, name, () => work.delete(name));
      work.set(name, known);
      return known;
    },
    forgetAllWork: () => forgetAllWork(room.db),
    close: async () => {
      await Promise.all([...work.values()].map((one) => one.close()));
      await room.db.close();
    },
  };
}

async function oneCluster(
  room: Room,
  cluster: number,
): Promise<(ClusterRecord & { readonly attrs: Attrs }) | undefined> {
  const [record] = await clusterRecords(room, [cluster]);
  const ad = await room.db.run((redis) => redis.get(`${room.db.prefix}ad:${cluster}`));
  return record && ad !== null ? { ...record, attrs: new Layer(JSON.parse(ad) as AttrTexts) } : undefined;
}
