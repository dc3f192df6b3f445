import { formatJobId } from '../job/ids.ts';
import type { Attrs } from '../job/attrs.ts';
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
  return { id: job.id, state: job.state, ad: attributes ? picker(attributes)(job.attrs) : job.attrs.toRecord() };
}

/** The same of many jobs: what their clusters say is looked up once. */
export function viewsOf(jobs: readonly JobRecord[], { attributes }: Pick<QueryRequest, 'attributes'>): JobView[] {
  const pick = attributes ? picker(attributes) : (attrs: Attrs) => attrs.toRecord();
  return jobs.map(({ id, state, attrs }) => ({ id, state, ad: pick(attrs) }));
}

/** Some attributes of a job, under the names that they were asked for by. */
export function picker(attributes: readonly string[]): (attrs: Attrs) => Record<string, string> {
  const wanted = new Map<string, string[]>();
  for (const name of attributes) {
    const low = name.toLowerCase();
    wanted.set(low, [...(wanted.get(low) ?? []), name]);
  }
  /** By a job's own spelling of a name. */
  const asked = new Map<string, readonly string[]>();
  const askedFor = (own: string): readonly string[] => {
    let names = asked.get(own);
    if (!names) {
      names = wanted.get(own.toLowerCase()) ?? [];
      asked.set(own, names);
    }
    return names;
  };
  const shared = new Map<Attrs, Readonly<Record<string, string>>>();
  const below = (parent: Attrs): Readonly<Record<string, string>> => {
    let record = shared.get(parent);
    if (!record) {
      record = Object.fromEntries(
        attributes.flatMap((name) => {
          const text = parent.get(name);
          return text === undefined ? [] : [[name, text]];
        }),
      );
      shared.set(parent, record);
    }
    return record;
  };
  return ({ parent, own }) => {
    const ad: Record<string, string> = parent ? { ...below(parent) } : {};
    for (const name in own) {
      const text = own[name];
      for (const as of askedFor(name)) {
        if (typeof text === 'string') ad[as] = text;
        else delete ad[as];
      }
    }
    return ad;
  };
}
