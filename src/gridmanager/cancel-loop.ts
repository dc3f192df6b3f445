import { POOL_SITE } from '../config/sites.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import { readNumber, readString } from '../job/values.ts';
import type { CandidateStep, Change, JobRecord } from '../queue/api.ts';
import type { Outcomes } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Again, BATCH, commitCandidateSteps, commitChanges, jobsIn, keyOf, type SiteContext } from './context.ts';
import { dropCheckpoints } from './checkpoint-destination.ts';
import { asWished, withoutWish } from '../job/moving.ts';
import { startAttributes, type WatchState } from './watch-loop.ts';

const ENDING = ['removing', 'holding', 'restarting'] as const;
/** How long to wait before asking again a site that could not confirm a cancellation yet, milliseconds. */
const LATER_MS = 5_000;
/** Retry time for attempts that are still being prepared at the site, milliseconds. */
const UNDERWAY_MS = 500;

/**
 * Withdraws attempts: once the site confirms that they are cancelled and will not run, it deletes them, and the job's
 * state advances. A job that is wanted elsewhere is withdrawn only if it has not started; otherwise it continues where
 * it is. Candidates that their job no longer needs are withdrawn as well: none has started without permission.
 */
export async function cancelRound(ctx: SiteContext, watch: Pick<WatchState, 'afresh'>): Promise<Again> {
  const ending = await byKeys(ctx, ENDING);
  const wantedElsewhere = await byKeys(ctx, ['withdrawing']);
  const { manager, record } = ctx;
  const open = await ctx.queue.candidates.next({ manager, site: record.name, state: 'withdrawing', limit: BATCH });
  const candidates = new Map(open.map((candidate) => [keyOf(ctx, candidate), candidate]));
  const wished = ending.size + wantedElsewhere.size + candidates.size;
  if (wished === 0) return undefined;
  for (const map of [ending, wantedElsewhere, candidates]) for (const key of ctx.underway) map.delete(key);
  crashPoint('gm.before-cancel');
  // The time of the request comes from the queue, so that it does not depend on which process asked first.
  const since = new Map([...ending, ...candidates].map(([key, wish]) => [key, wish.since * 1000]));
  const outcomes = new Map([
    ...(since.size > 0 ? await ctx.site.cancel([...since.keys()], { since }) : NONE),
    ...(wantedElsewhere.size > 0
      ? await ctx.site.cancel([...wantedElsewhere.keys()], { onlyIfNotStarted: true })
      : NONE),
  ]);
  crashPoint('gm.after-cancel');
  const jobs = new Map([...ending, ...wantedElsewhere]);
  const withdrawn = [...outcomes].filter(([, outcome]) => outcome.ok).map(([key]) => key);
  const forgotten = withdrawn.length > 0 ? await ctx.site.forget(withdrawn) : NONE;
  const changes: Change[] = [];
  const steps: CandidateStep[] = [];
  for (const [key, outcome] of forgotten) {
    if (!outcome.ok) continue;
    ctx.coming.delete(key);
    await ctx.spool.remove(key);
    const [job, candidate] = [jobs.get(key), candidates.get(key)];
    if (candidate) steps.push({ id: candidate.id, attempt: candidate.attempt, event: 'withdrawn' });
    if (job) {
      if (job.state === 'removing') await dropCheckpoints(ctx, job.id, job.attrs);
      const elsewhere = job.state === 'removing' ? {} : asWished(job.attrs);
      const more = job.state === 'withdrawing' ? backFrom(ctx, job) : { set: brokenOff(job) };
      changes.push({ ...of(job), event: 'withdrawn', ...more, ...elsewhere, set: { ...more.set, ...elsewhere.set } });
    }
  }
  for (const [key, outcome] of outcomes) {
    const job = jobs.get(key);
    if (!job || outcome.ok || outcome.refusal.code !== 'already-started') continue;
    changes.push({ ...of(job), event: 'started', set: startedAfterAll(ctx, job, key) });
    // Reports that the site made in the meantime were ignored.
    watch.afresh = true;
  }
  const committed = await commitChanges(ctx, changes);
  await commitCandidateSteps(ctx, steps);
  crashPoint('gm.saved-cancel');
  ctx.wake('submit');
  if (watch.afresh) ctx.wake('watch');
  if (outcomes.size < wished) return UNDERWAY_MS;
  // The owner changed the wish for a job after it was read.
  if (committed.some((result) => !result.ok)) return 0;
  if (changes.length + steps.length < wished) return LATER_MS;
  return wished >= BATCH ? 0 : undefined;
}

async function byKeys(ctx: SiteContext, states: readonly State[]): Promise<Map<AttemptKey, JobRecord>> {
  const jobs = (await Promise.all(states.map((state) => jobsIn(ctx, state)))).flat();
  return new Map(jobs.map((job) => [keyOf(ctx, job), job]));
}

const NONE: Outcomes = new Map();

function of(job: JobRecord): Pick<Change, 'id' | 'from' | 'attempt'> {
  return { id: job.id, from: job.state, attempt: job.attempt };
}

/** The job started before it could be withdrawn. */
function startedAfterAll(ctx: SiteContext, job: JobRecord, key: AttemptKey): AttrTexts {
  return { ...startAttributes(ctx, job, { key, is: 'running' }), ...withoutWish(job.attrs) };
}

/** A job of the broker returns to it without a site; a pool job, which was edited, is described again. */
function backFrom(ctx: SiteContext, job: JobRecord): Pick<Change, 'route' | 'set'> {
  if (ctx.record.batch === POOL_SITE.batch) return { set: { GridJobId: null, GridJobStatus: null } };
  return {
    route: { manager: job.manager, site: '' },
    set: { GridResource: null, GridJobId: null, GridJobStatus: null, GryphusRoutedAt: null },
  };
}

/** An interrupted run counts like one that ended by itself: from its start until the request to stop it. */
function brokenOff(job: JobRecord): AttrTexts {
  const started = readNumber(job.attrs, 'JobCurrentStartDate');
  if (started === undefined || readString(job.attrs, 'GridJobStatus') === 'DONE') return {};
  const wall = Math.max(0, job.since - started);
  const before = readNumber(job.attrs, 'RemoteWallClockTime') ?? 0;
  return { RemoteWallClockTime: `${before + wall}.0`, LastRemoteWallClockTime: `${wall}.0` };
}
