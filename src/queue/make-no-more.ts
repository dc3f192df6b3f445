import type { ClusterRecord, Queue } from './api.ts';

/** Stops a cluster's late materialization, even if the Scheduler has created more procs since the record was read. */
export async function makeNoMore(
  queue: Queue,
  { cluster, nextProc }: Pick<ClusterRecord, 'cluster' | 'nextProc'>,
): Promise<void> {
  for (let next: number | undefined = nextProc; next !== undefined; ) {
    const answer = await queue.materialize(cluster, { nextProc: next, procs: [], done: true });
    next = answer.ok ? undefined : answer.nextProc;
  }
}
