import { isEnd } from '../job/life.ts';
import { quoted } from '../job/values.ts';
import { type Change, makeNoMore, type Queue } from '../queue/api.ts';

/** Jobs removed in one exchange. */
const AT_ONCE = 1000;

/** Removes all jobs of these clusters, and lets them make no more. Idempotent. */
export async function removeClusters(queue: Queue, clusters: readonly number[], reason: string): Promise<void> {
  if (clusters.length === 0) return;
  const wanted = new Set(clusters);
  // First, so that what it has made by then is among those that are removed.
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

/** A DAG manager has left the queue: what it left behind is removed, and what was kept for it forgotten. */
export async function sweepDag(queue: Queue, manager: number): Promise<void> {
  const dagStream = queue.dag(manager);
  const clusters = (await dagStream.submits()).map(({ cluster }) => cluster);
  // HTCondor's words (OtherJobRemoveRequirements).
  const reason = `removed because <OtherJobRemoveRequirements = DAGManJobId =?= ${manager}> fired when job (${manager}.0) was removed`;
  await removeClusters(queue, clusters, reason);
  await dagStream.drop();
}
