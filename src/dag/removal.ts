import { isEnd } from '../job/life.ts';
import { quoted } from '../job/values.ts';
import { type Change, makeNoMore, type Queue } from '../queue/api.ts';

/** How many jobs to remove in one exchange. */
const AT_ONCE = 1000;

/** Removes all jobs of these clusters and stops them from making more. Idempotent. */
export async function removeClusters(queue: Queue, clusters: readonly number[], reason: string): Promise<void> {
  if (clusters.length === 0) return;
  const wanted = new Set(clusters);
  // First, so that jobs made until then are among those removed.
  for (const waiting of await queue.unmaterialized()) if (wanted.has(waiting.cluster)) await makeNoMore(queue, waiting);
  let changes: Change[] = [];
  for await (const job of queue.query({ clusters })) {
    if (isEnd(job.state)) continue;
    changes.push({ id: job.id, event: 'remove', set: { RemoveReason: quoted(reason) } });
    if (changes.length < AT_ONCE) continue;
    await queue.transitionMany(changes);
    changes = [];
  }
  if (changes.length > 0) await queue.transitionMany(changes);
}

/** When a DAG manager has left the queue, removes the jobs that it left behind and deletes what was kept for it. */
export async function sweepDag(queue: Queue, manager: number): Promise<void> {
  const dagStream = queue.dag(manager);
  const clusters = (await dagStream.submits()).map(({ cluster }) => cluster);
  // HTCondor's wording (OtherJobRemoveRequirements).
  const reason = `removed because <OtherJobRemoveRequirements = DAGManJobId =?= ${manager}> fired when job (${manager}.0) was removed`;
  await removeClusters(queue, clusters, reason);
  await dagStream.drop();
}
