import { POOL_SITE } from '../config/sites.ts';
import { released } from '../job/hold.ts';
import { IdSet } from '../job/id-set.ts';
import type { JobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { isParallelUniverse, togetherWith } from '../job/parallel-node.ts';
import { quoted, readNumber } from '../job/values.ts';
import { type Change, type ChangeResult, type JobHead, type JobRecord, makeNoMore, type Queue } from '../queue/api.ts';
import { selectChunks, selectJobs } from './select.ts';
import { ahead } from '../util/ahead.ts';
import type { Action, ActionRequest, ActionResult, Selection } from './types.ts';

/** As many jobs, or a few more, are changed at once. */
const AT_ONCE = 2000;
/** As many exchanges with the queue read jobs ahead of those that are changed. */
const CHUNKS_AHEAD = 4;
/** HTCondor's hold code for a user's own hold. */
const BY_USER = 1;

/** Holds, releases or removes the selected jobs; returns each job's own result, in the order of ids. */
export async function act(queue: Queue, action: Action, request: ActionRequest, user: string): Promise<ActionResult[]> {
  const results: ActionResult[] = [];
  const change = async (wishes: readonly Wish[]): Promise<void> => {
    if (wishes.length === 0) return;
    const answers = await queue.transitionMany(wishes.map((wish) => wish.change));
    const jobs = wishes.map((wish) => wish.job);
    const gone = action === 'remove' && request.force === true ? await letGo(queue, jobs) : new Set<JobHead>();
    for (const [i, job] of jobs.entries()) {
      if (gone.has(job)) results.push({ id: job.id, result: 'done', message: GONE });
      // Whoever did not name the job did not ask for one that left between the look and the change.
      else if (request.ids || !hasLeft(answers[i])) results.push(resultOf(action, job, answers[i]));
    }
  };
  const removeNow = (jobs: readonly JobRecord[]) => change(jobs.map((job) => wishFor(action, job, request, user)));
  await factories(queue, action, request);
  const together = new Map<number, Set<number>>();
  let batch: Wish[] = [];
  // The next jobs are read while these are changed.
  let changing = Promise.resolve();
  for await (const wishes of ahead(wishesFor(queue, action, request, user), CHUNKS_AHEAD)) {
    for (const wish of wishes) {
      batch.push(wish);
      if (!wish.withOthers) continue;
      const { cluster, proc } = wish.job.id;
      together.set(cluster, (together.get(cluster) ?? new Set()).add(proc));
    }
    if (batch.length < AT_ONCE) continue;
    await changing;
    changing = change(batch);
    changing.catch(() => undefined);
    batch = [];
  }
  await changing;
  await change(batch);
  if (action === 'remove') results.push(...(await removeUnmade(queue, request, results, removeNow)));
  if (together.size === 0) return withMissing(request, results);
  const named = results.length;
  const others = selectJobs(queue, { clusters: [...together.keys()] });
  const rest: Wish[] = [];
  for await (const job of others)
    if (!together.get(job.id.cluster)?.has(job.id.proc)) rest.push(wishFor(action, job, request, user));
  await change(rest);
  const done = results.filter(({ result }, i) => i < named || result === 'done');
  return withMissing(
    request,
    done.sort((a, b) => a.id.cluster - b.id.cluster || a.id.proc - b.id.proc),
  );
}

/** What is to be done with one job. */
interface Wish {
  readonly job: JobHead;
  readonly change: Change;
  /** As `startsWithOthers`. */
  readonly withOthers: boolean;
}

function wishFor(action: Action, job: JobRecord, request: ActionRequest, user: string): Wish {
  return { job, change: changeFor(action, job, request, user), withOthers: startsWithOthers(job) };
}

async function* wishesFor(
  queue: Queue,
  action: Action,
  request: ActionRequest,
  user: string,
): AsyncIterable<readonly Wish[]> {
  const { looked } = request;
  const remove = removal(request.reason, user);
  for (const run of await runsOf(queue, action, request)) {
    if (typeof run === 'number') {
      for await (const jobs of queue.heads(run)) {
        looked?.(jobs.length);
        yield jobs.map((job) => ({ job, change: remove(job), withOthers: false }));
      }
    } else {
      for await (const jobs of selectChunks(queue, run, { looked }))
        yield jobs.map((job) => wishFor(action, job, request, user));
    }
  }
}

/** From this number of jobs on, a cluster's are removed without being read. */
const LARGE = 10_000;

/** What is acted on, in the order of ids: clusters whose jobs need not be read, and selections of those that must be. */
async function runsOf(queue: Queue, action: Action, request: ActionRequest): Promise<readonly (number | Selection)[]> {
  const { ids, clusters, owner, constraint } = request;
  if (action !== 'remove' || ids !== undefined || constraint !== undefined) return [request];
  const runs: (number | Selection)[] = [];
  let read: number[] = [];
  const close = () => {
    if (read.length > 0) runs.push({ clusters: read });
    read = [];
  };
  for (const { cluster, owner: whose, counts, universe } of await queue.summaries(clusters)) {
    if (owner !== undefined && owner !== whose) continue;
    const jobs = Object.values(counts).reduce((sum, n) => sum + n, 0);
    if (jobs < LARGE || universe === undefined || isParallelUniverse(universe)) {
      read.push(cluster);
      continue;
    }
    close();
    runs.push(cluster);
  }
  close();
  return runs;
}

/** Whether it starts and ends together with other jobs of its cluster: what is done with one is done with all. */
function startsWithOthers({ site, attrs }: JobRecord): boolean {
  return site === POOL_SITE.name && togetherWith(attrs) > 1;
}

/** The results, and those of the selected ids that have none. */
export function withMissing({ ids = [] }: Selection, results: readonly ActionResult[]): ActionResult[] {
  const seen = new IdSet();
  if (ids.length > 0) for (const { id } of results) seen.add(id);
  return results.concat(ids.filter((id) => !seen.has(id)).map(missing));
}

/** Removes the selected jobs that late materialization has not created yet; `removeNow` removes those that it just has. */
async function removeUnmade(
  queue: Queue,
  { ids = [], constraint, owner }: ActionRequest,
  results: readonly ActionResult[],
  removeNow: (jobs: readonly JobRecord[]) => Promise<void>,
): Promise<ActionResult[]> {
  if (ids.length === 0 || constraint !== undefined) return [];
  const seen = new IdSet();
  for (const { id } of results) seen.add(id);
  const left = ids.filter((id) => !seen.has(id));
  if (left.length === 0) return [];
  const late = new Map((await queue.unmaterialized()).map((one) => [one.cluster, one]));
  const wanted = new Map<number, number[]>();
  for (const id of left) {
    const waits = late.get(id.cluster);
    if (waits === undefined || (owner !== undefined && owner !== waits.owner)) continue;
    const procs = wanted.get(id.cluster);
    if (procs) procs.push(id.proc);
    else wanted.set(id.cluster, [id.proc]);
  }
  const done: ActionResult[] = [];
  for (const [cluster, procs] of wanted) {
    const others = new Set(await queue.unwant(cluster, procs));
    if (others.size > 0) await removeNow(await queue.get([...others].map((proc) => ({ cluster, proc }))));
    for (const proc of procs)
      if (!others.has(proc)) done.push({ id: { cluster, proc }, result: 'done', message: DONE.remove });
  }
  return done;
}

function missing(id: JobId): ActionResult {
  return { id, result: 'not-found', message: 'not found' };
}

/** Drops removed jobs from the queue although no site has confirmed the removal; returns those that this dropped. */
async function letGo(queue: Queue, jobs: readonly JobHead[]): Promise<ReadonlySet<JobHead>> {
  if (jobs.length === 0) return new Set();
  const answers = await queue.transitionMany(
    jobs.map(({ id }): Change => ({ id, event: 'withdrawn', from: 'removing' })),
  );
  return new Set(jobs.filter((_, i) => answers[i]?.ok));
}

/** Removing a whole cluster stops its materialization; holding it pauses that (HTCondor's `JobMaterializePaused`). */
async function factories(queue: Queue, action: Action, request: ActionRequest): Promise<void> {
  const wanted = request.clusters;
  if (request.constraint !== undefined || (request.ids && !wanted)) return;
  for (const waiting of await queue.unmaterialized()) {
    if (wanted && !wanted.includes(waiting.cluster)) continue;
    if (request.owner !== undefined && request.owner !== waiting.owner) continue;
    if (action === 'remove') await makeNoMore(queue, waiting);
    else {
      const paused = action === 'hold' ? '1' : '0';
      await queue.editCluster(waiting.cluster, { JobMaterializePaused: paused, JobMaterializePauseReason: null });
    }
  }
}

function changeFor(action: Action, job: JobRecord, { reason, subcode = 0 }: ActionRequest, user: string): Change {
  switch (action) {
    case 'hold':
      return {
        id: job.id,
        event: 'hold',
        set: {
          HoldReason: quoted(by(user, reason ?? 'via gryphus hold')),
          HoldReasonCode: String(BY_USER),
          HoldReasonSubCode: String(subcode),
          NumHolds: String((readNumber(job.attrs, 'NumHolds') ?? 0) + 1),
        },
      };
    case 'release':
      return {
        id: job.id,
        event: 'release',
        set: {
          ...released(job),
          ReleaseReason: quoted(by(user, reason ?? 'via gryphus release')),
        },
      };
    case 'remove':
      return removal(reason, user)(job);
  }
}

function removal(reason: string | undefined, user: string): (job: JobHead) => Change {
  const set = { RemoveReason: quoted(by(user, reason ?? 'via gryphus rm')) };
  // An ended job that `leave_in_queue` keeps leaves once it no longer asks to stay.
  return ({ id, state }) => (isEnd(state) ? { id, set: { LeaveJobInQueue: 'false' } } : { id, event: 'remove', set });
}

/** HTCondor's logs and ads end a user's reason like this (recorded). */
function by(user: string, reason: string): string {
  return `${reason} (by user ${user})`;
}

const ALREADY: Readonly<Record<Action, { readonly shows: readonly string[]; readonly message: string }>> = {
  hold: { shows: ['held', 'holding', 'stopping', 'kept'], message: 'already held' },
  release: { shows: [], message: 'not held to be released' },
  remove: { shows: ['removing', 'removed'], message: 'already marked for removal' },
};
/** condor_rm's words. */
const GONE = 'removed locally (remote state unknown)';
const DONE: Readonly<Record<Action, string>> = { hold: 'held', release: 'released', remove: 'marked for removal' };

function hasLeft(answer: ChangeResult | undefined): boolean {
  return answer?.ok === false && answer.why === 'no-such-job';
}

function resultOf(action: Action, job: JobHead, answer: ChangeResult | undefined): ActionResult {
  if (answer?.ok) return { id: job.id, result: 'done', message: DONE[action] };
  if (!answer || answer.why === 'no-such-job') return missing(job.id);
  const state = answer.state ?? job.state;
  if (ALREADY[action].shows.includes(state)) return { id: job.id, result: 'already', message: ALREADY[action].message };
  if (action === 'release') return { id: job.id, result: 'bad-state', message: ALREADY.release.message };
  return { id: job.id, result: 'bad-state', message: `not possible now: the job is ${state}` };
}
