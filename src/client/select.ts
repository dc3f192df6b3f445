import { IdSet } from '../job/id-set.ts';
import type { Attrs } from '../job/attrs.ts';
import { compileConstraint } from '../job/values.ts';
import type { JobRecord, LookWish, Queue, Sighting } from '../queue/api.ts';
import type { AdText, JobView, QueryRequest, QueueRequest, SeenJobView, Selection, Selections } from './types.ts';

/** Converts a selection to a query; a constraint that does not parse is refused with line and column. */
export function wishOf({ ids, clusters, owner, constraint }: Selection): LookWish {
  const where = constraint === undefined ? undefined : compileConstraint(constraint, 'constraint');
  return {
    ...(ids === undefined ? {} : { ids }),
    ...(clusters === undefined ? {} : { clusters }),
    ...(owner === undefined ? {} : { owner }),
    ...(where === undefined ? {} : { where: (job) => where(job.attrs) }),
  };
}

export function wishesOf({ or = [], ...first }: Selections): LookWish[] {
  return [first, ...or].map(wishOf);
}

/** The selected jobs in the queue, each once. */
export async function* selectJobs(
  queue: Queue,
  selections: Selections,
  how: Pick<QueryRequest, 'limit' | 'looked'> = {},
): AsyncIterable<JobRecord> {
  for await (const jobs of selectChunks(queue, selections, how)) yield* jobs;
}

export async function* selectChunks(
  queue: Queue,
  selections: Selections,
  { limit, looked, states }: Pick<QueueRequest, 'limit' | 'looked' | 'states'> = {},
): AsyncIterable<readonly JobRecord[]> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  const wishes = wishesOf(selections);
  const seen = new IdSet();
  for (const wish of wishes) {
    if (left <= 0) return;
    for await (const jobs of queue.queryChunks({ ...wish, ...(states && { states }), ...(looked && { looked }) })) {
      const fresh = wishes.length > 1 ? jobs.filter(({ id }) => seen.add(id)) : jobs;
      const some = fresh.slice(0, left);
      if (some.length > 0) yield some;
      left -= some.length;
      if (left <= 0) return;
    }
  }
}

/** Jobs that have left the queue, newest first. */
export async function* historyOf(queue: Queue, request: QueryRequest): AsyncGenerator<JobView> {
  const [first = {}, ...or] = wishesOf(request);
  const { limit } = request;
  for await (const job of queue.history.read({ ...first, or, ...(limit === undefined ? {} : { limit }) }))
    yield viewOf(job, request);
}

/** Each job once: wherever it is, or only if it is in the queue. */
export async function* lookFor(queue: Queue, selections: Selections, everywhere: boolean): AsyncIterable<Sighting> {
  if (everywhere) yield* queue.look(wishesOf(selections));
  else for await (const jobs of selectChunks(queue, selections)) yield { in: 'queue', jobs };
}

/** Each job once, wherever it is. */
export async function* lookForJobs(queue: Queue, request: QueryRequest): AsyncGenerator<SeenJobView> {
  for await (const sighting of queue.look(wishesOf(request), request.limit)) {
    for (const view of viewsOf(sighting.jobs, request)) yield { ...view, in: sighting.in };
  }
}

export function viewOf(
  job: Pick<JobRecord, 'id' | 'state' | 'attrs'>,
  request: Pick<QueryRequest, 'attributes'> = {},
): JobView {
  const { attributes } = request;
  return { id: job.id, state: job.state, ad: attributes ? picker(attributes)(job.attrs) : job.attrs.toRecord() };
}

/** The same for many jobs: attributes of their clusters are looked up only once. */
export function viewsOf(
  jobs: readonly Pick<JobRecord, 'id' | 'state' | 'attrs'>[],
  { attributes }: Pick<QueryRequest, 'attributes'>,
): JobView[] {
  const pick = attributes ? picker(attributes) : (attrs: Attrs) => attrs.toRecord();
  return jobs.map(({ id, state, attrs }) => ({ id, state, ad: pick(attrs) }));
}

/** The ads of a cluster's jobs by what the jobs have of their own, and how many came one after the other without an equal. */
interface Alike {
  readonly ads: Map<string, AdText>;
  misses: number;
}

const IN_VAIN = 100;

/** Some attributes of a job, under the names by which they were requested; jobs for which all are the same get one ad. */
export function picker(attributes: readonly string[]): (attrs: Attrs) => AdText {
  const names = [...new Set(attributes)];
  const byLow = byLowerCase(names);
  /** Keyed by a job's own spelling of a name. */
  const asked = new Map<string, readonly string[]>();
  const askedFor = (own: string): readonly string[] => {
    let found = asked.get(own);
    if (!found) {
      found = byLow.get(own.toLowerCase()) ?? [];
      asked.set(own, found);
    }
    return found;
  };
  const shared = new Map<Attrs | undefined, Readonly<Record<string, string>>>();
  const below = (parent: Attrs | undefined): Readonly<Record<string, string>> => {
    let ad = shared.get(parent);
    if (!ad) {
      const found = names.map((name) => [name, parent?.get(name)] as const);
      ad = Object.fromEntries(found.filter((one): one is [string, string] => one[1] !== undefined));
      shared.set(parent, ad);
    }
    return ad;
  };
  const known = new Map<Attrs | undefined, Alike>();
  return ({ parent, own }) => {
    let alike = known.get(parent);
    if (!alike) known.set(parent, (alike = { ads: new Map(), misses: 0 }));
    // Where each job differs, as by its arguments, to look for another like it is in vain.
    if (alike.misses === IN_VAIN) return adOf(parent, own);
    let key = '';
    for (const name in own) if (askedFor(name).length > 0) key += `${name}\0${own[name] ?? '\x01'}\0`;
    const same = alike.ads.get(key);
    alike.misses = same ? 0 : alike.misses + 1;
    if (same) return same;
    const ad = Object.freeze(adOf(parent, own));
    alike.ads.set(key, ad);
    return ad;
  };

  function adOf(parent: Attrs | undefined, own: Attrs['own']): AdText {
    // A copy of the cluster's is made at once, whatever the number of attributes.
    const ad = { ...below(parent) };
    for (const name in own) {
      const text = own[name];
      for (const as of askedFor(name)) {
        if (typeof text === 'string') ad[as] = text;
        else delete ad[as];
      }
    }
    return ad;
  }
}

function byLowerCase(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const name of names) {
    const low = name.toLowerCase();
    found.set(low, [...(found.get(low) ?? []), name]);
  }
  return found;
}
