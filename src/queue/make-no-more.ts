import type { ClusterRecord, Queue } from './api.ts';

/** The cluster makes no more jobs, also where the Scheduler has made some since it was looked at. */
export async function makeNoMore(
  queue: Queue,
  { cluster, nextProc }: Pick<ClusterRecord, 'cluster' | 'nextProc'>,
): Promise<void> {
  for (let next: number | undefined = nextProc; next !== undefined; ) {
    const answer = await queue.materialize(cluster, { nextProc: next, procs: [], done: true });
    next = answer.ok ? undefined : answer.nextProc;
  }
}
