import { isEnd, type State } from '../job/life.ts';
import { readNumber } from '../job/values.ts';
import type { ClusterRecord, Lease, Queue } from '../queue/api.ts';
import { materialize } from '../submit/api.ts';

/** Procs made in one write at most. */
const AT_ONCE = 5000;

/**
 * Late materialization: makes as many procs of each waiting cluster as its limits leave room for (HTCondor's manual,
 * `max_materialize`, `max_idle`).
 */
export async function materializeAll(queue: Queue, lease: Lease): Promise<void> {
  for (const waiting of await queue.unmaterialized()) {
    const full = await queue.cluster(waiting.cluster);
    if (!full?.digest || (readNumber(full.attrs, 'JobMaterializePaused') ?? 0) !== 0) continue;
    const count = room(
      full,
      readNumber(full.attrs, 'JobMaterializeLimit'),
      readNumber(full.attrs, 'JobMaterializeMaxIdle'),
    );
    if (count <= 0) continue;
    const made = materialize(full.digest, { cluster: full.cluster, fromProc: full.nextProc, count });
    await queue.materialize(full.cluster, { nextProc: full.nextProc, procs: made.procs, done: made.done, lease });
  }
}

/** How many more procs a cluster may have now. */
export function room(cluster: ClusterRecord, limit: number | undefined, maxIdle: number | undefined): number {
  const counts = Object.entries(cluster.counts) as [State, number][];
  const live = counts.filter(([state]) => !isEnd(state)).reduce((sum, [, jobs]) => sum + jobs, 0);
  const idle = counts.filter(([state]) => state === 'idle').reduce((sum, [, jobs]) => sum + jobs, 0);
  const left = cluster.total - cluster.nextProc;
  return Math.min(
    left,
    AT_ONCE,
    (limit ?? Number.POSITIVE_INFINITY) - live,
    (maxIdle ?? Number.POSITIVE_INFINITY) - idle,
  );
}
