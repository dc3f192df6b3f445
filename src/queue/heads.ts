import type { State } from '../job/life.ts';
import { textsOf } from './answers.ts';
import type { JobHead } from './api.ts';
import type { QueueContext } from './context.ts';
import { PAGE } from './pages.ts';
import { clusterRecords, getJobs } from './read.ts';
import { stateNamed } from './record.ts';

/** Pages in one exchange: a running script blocks all other clients. */
const PAGES = 16;

/** What can be said of a cluster's jobs from the indexes of their places, without reading them; in order of their ids. */
export async function* heads(context: QueueContext, cluster: number): AsyncIterable<readonly JobHead[]> {
  const [record] = await clusterRecords(context, [cluster]);
  const end = record?.nextProc ?? 0;
  for (let from = 0; from < end; from += PAGES * PAGE) {
    const jobs = await headsIn(context, cluster, from, Math.min(end, from + PAGES * PAGE));
    if (jobs.length > 0) yield jobs;
  }
}

async function headsIn(context: QueueContext, cluster: number, from: number, end: number): Promise<readonly JobHead[]> {
  const answer = await context.db.script('heads', [cluster, from / PAGE, PAGES]);
  // If jobs are in too many groups, as by a priority for each, to read them is cheaper.
  if (!Array.isArray(answer))
    return getJobs(
      context,
      Array.from({ length: end - from }, (_, i) => ({ cluster, proc: from + i })),
    );
  const groups = textsOf(answer);
  const states: State[] = [];
  for (let i = 0; i + 1 < groups.length; i += 2) {
    const state = stateNamed(groups[i]);
    if (state === undefined) continue;
    for (const range of (groups[i + 1] ?? '').split(',')) {
      const [first = 0, last = first] = range.split('-').map(Number);
      for (let proc = first; proc <= last; proc++) states[proc - from] = state;
    }
  }
  const jobs: JobHead[] = [];
  for (let i = 0; i < end - from; i++) {
    const state = states[i];
    if (state !== undefined) jobs.push({ id: { cluster, proc: from + i }, state });
  }
  return jobs;
}
