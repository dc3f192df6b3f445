import { formatJobId } from '../job/ids.ts';
import type { ClassAdPredicate } from '../job/values.ts';
import { compileConstraint } from '../job/values.ts';
import type { JobRecord, Query, Queue } from '../queue/api.ts';
import type { JobView, QueryRequest, Selection } from './types.ts';

/** The queue's query for a selection; a constraint that does not parse is refused with its line and column. */
export function queryOf(selection: Selection): Query {
  const where: ClassAdPredicate | undefined =
    selection.constraint === undefined ? undefined : compileConstraint(selection.constraint, '--constraint');
  return {
    ...(selection.ids === undefined ? {} : { ids: selection.ids }),
    ...(selection.clusters === undefined ? {} : { clusters: selection.clusters }),
    ...(selection.owner === undefined ? {} : { owner: selection.owner }),
    ...(where === undefined ? {} : { where: (job: JobRecord) => where(job.attrs) }),
  };
}

/** Ids and clusters together are alternatives, as HTCondor's commands take them. */
export async function* selectJobs(queue: Queue, selection: Selection, limit?: number): AsyncIterable<JobRecord> {
  for await (const jobs of selectChunks(queue, selection, limit)) yield* jobs;
}

export async function* selectChunks(
  queue: Queue,
  selection: Selection,
  limit?: number,
): AsyncIterable<readonly JobRecord[]> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  if (left <= 0) return;
  const { ids, clusters, ...rest } = selection;
  const parts: Selection[] = [];
  if (ids && ids.length > 0) parts.push({ ...rest, ids });
  if (clusters && clusters.length > 0) parts.push({ ...rest, clusters });
  if (parts.length === 0) parts.push(rest);
  const seen = new Set<string>();
  for (const part of parts) {
    for await (const jobs of queue.queryChunks(queryOf(part))) {
      const fresh = parts.length > 1 ? jobs.filter(({ id }) => !seen.has(formatJobId(id))) : jobs;
      if (parts.length > 1) for (const { id } of fresh) seen.add(formatJobId(id));
      const some = fresh.slice(0, left);
      if (some.length > 0) yield some;
      left -= some.length;
      if (left <= 0) return;
    }
  }
}

export function viewOf(
  job: Pick<JobRecord, 'id' | 'state' | 'attrs'>,
  request: Pick<QueryRequest, 'attributes'> = {},
): JobView {
  const { attributes } = request;
  if (!attributes) return { id: job.id, state: job.state, ad: job.attrs.toRecord() };
  const ad: Record<string, string> = {};
  for (const name of attributes) {
    const text = job.attrs.get(name);
    if (text !== undefined) ad[name] = text;
  }
  return { id: job.id, state: job.state, ad };
}
