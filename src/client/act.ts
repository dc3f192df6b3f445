import { POOL_SITE } from '../config/sites.ts';
import { released } from '../job/hold.ts';
import { IdSet } from '../job/id-set.ts';
import type { JobId } from '../job/ids.ts';
import { isEnd } from '../job/life.ts';
import { togetherWith } from '../job/parallel-node.ts';
import { quoted, readNumber } from '../job/values.ts';
import { type Change, type ChangeResult, type JobRecord, makeNoMore, type Queue } from '../queue/api.ts';
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
  const change = async (jobs: readonly JobRecord[]): Promise<void> => {
    if (jobs.length === 0) return;
    const answers = await queue.transitionMany(jobs.map((job) => changeFor(action, job, request.reason, user)));
    const gone = action === 'remove' && request.force === true ? await letGo(queue, jobs) : new Set<JobRecord>();
    for (const [i, job] of jobs.entries())
      results.push(gone.has(job) ? { id: job.id, result: 'done', message: GONE } : resultOf(action, job, answers[i]));
  };
  await factories(queue, action, request);
  const together = new Map<number, Set<number>>();
  let batch: JobRecord[] = [];
  // The next jobs are read while these are changed.
  let changing = Promise.resolve();
  for await (const jobs of ahead(selectChunks(queue, request, { looked: request.looked }), CHUNKS_AHEAD)) {
    for (const job of jobs) {
      batch.push(job);
      if (!startsWithOthers(job)) continue;
      const { cluster, proc } = job.id;
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
  if (together.size === 0) return withMissing(request, results);
  const named = results.length;
  const others = selectJobs(queue, { clusters: [...together.keys()] });
  const rest: JobRecord[] = [];
  for await (const job of others) if (!together.get(job.id.cluster)?.has(job.id.proc)) rest.push(job);
  await change(rest);
  const done = results.filter(({ result }, i) => i < named || result === 'done');
  return withMissing(
    request,
    done.sort((a, b) => a.id.cluster - b.id.cluster || a.id.proc - b.id.proc),
  );
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

function missing(id: JobId): ActionResult {
  return { id, result: 'not-found', message: 'not found' };
}

/** Drops removed jobs from the queue although no site has confirmed the removal; returns those that this dropped. */
async function letGo(queue: Queue, jobs: readonly JobRecord[]): Promise<ReadonlySet<JobRecord>> {
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

function changeFor(action: Action, job: JobRecord, reason: string | undefined, user: string): Change {
  switch (action) {
    case 'hold':
      return {
        id: job.id,
        event: 'hold',
        set: {
          HoldReason: quoted(by(user, reason ?? 'via gryphus hold')),
          HoldReasonCode: String(BY_USER),
          HoldReasonSubCode: '0',
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
      // An ended job that `leave_in_queue` keeps leaves once it no longer asks to stay.
      if (isEnd(job.state)) return { id: job.id, set: { LeaveJobInQueue: 'false' } };
      return {
        id: job.id,
        event: 'remove',
        set: { RemoveReason: quoted(by(user, reason ?? 'via gryphus rm')) },
      };
  }
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

function resultOf(action: Action, job: JobRecord, answer: ChangeResult | undefined): ActionResult {
  if (answer?.ok) return { id: job.id, result: 'done', message: DONE[action] };
  if (!answer || answer.why === 'no-such-job') return missing(job.id);
  const state = answer.state ?? job.state;
  if (ALREADY[action].shows.includes(state)) return { id: job.id, result: 'already', message: ALREADY[action].message };
  if (action === 'release') return { id: job.id, result: 'bad-state', message: ALREADY.release.message };
  return { id: job.id, result: 'bad-state', message: `not possible now: the job is ${state}` };
}
