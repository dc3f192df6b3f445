import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { readNumber, readString } from '../job/values.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import type { Outcomes } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Again, BATCH, commitChanges, jobsIn, keyOf, type SiteContext } from './context.ts';
import { startAttributes, type WatchState } from './watch-lane.ts';

const ENDING = ['removing', 'holding', 'restarting'] as const;
/** A site that could not confirm yet is asked again after so long, milliseconds. */
const LATER_MS = 5_000;

/**
 * Withdraws attempts: when the site says that none can run any more, it forgets them, and the job goes on. A job that is
 * wanted elsewhere is withdrawn only where it has not started; one that has runs on where it is.
 */
export async function cancelRound(ctx: SiteContext, watch: Pick<WatchState, 'afresh'>): Promise<Again> {
  const ending = (await Promise.all(ENDING.map((state) => jobsIn(ctx, state)))).flat();
  const wantedElsewhere = await jobsIn(ctx, 'withdrawing');
  const jobs = [...ending, ...wantedElsewhere];
  if (jobs.length === 0) return undefined;
  const byKey = new Map<AttemptKey, JobRecord>(jobs.map((job) => [keyOf(ctx, job), job]));
  const keys = (some: readonly JobRecord[]) => some.map((job) => keyOf(ctx, job));
  crashPoint('gm.before-cancel');
  const outcomes = new Map([
    ...(ending.length > 0 ? await ctx.site.cancel(keys(ending)) : NONE),
    ...(wantedElsewhere.length > 0 ? await ctx.site.cancel(keys(wantedElsewhere), { onlyIfNotStarted: true }) : NONE),
  ]);
  crashPoint('gm.after-cancel');
  const withdrawn = [...outcomes].filter(([, outcome]) => outcome.ok).map(([key]) => key);
  const forgotten = withdrawn.length > 0 ? await ctx.site.forget(withdrawn) : NONE;
  const changes: Change[] = [];
  for (const [key, outcome] of forgotten) {
    const job = byKey.get(key);
    if (!job || !outcome.ok) continue;
    await ctx.spool.remove(key);
    changes.push({
      ...of(job),
      event: 'withdrawn',
      ...(job.state === 'withdrawing' ? backToTheBroker(job) : { set: brokenOff(job) }),
    });
  }
  for (const [key, outcome] of outcomes) {
    const job = byKey.get(key);
    if (!job || outcome.ok || outcome.refusal.code !== 'already-started') continue;
    changes.push({ ...of(job), event: 'started', set: startAttributes(ctx, job, { key, is: 'running' }) });
    // What the site said of it meanwhile was not heard.
    watch.afresh = true;
  }
  await commitChanges(ctx, changes);
  crashPoint('gm.saved-cancel');
  ctx.wake('submit');
  if (watch.afresh) ctx.wake('watch');
  if (changes.length < jobs.length) return LATER_MS;
  return jobs.length >= BATCH ? 0 : undefined;
}

const NONE: Outcomes = new Map();

function of(job: JobRecord): Pick<Change, 'id' | 'from' | 'attempt'> {
  return { id: job.id, from: job.state, attempt: job.attempt };
}

/** Without a site it waits for the next choice. */
function backToTheBroker(job: JobRecord): Pick<Change, 'route' | 'set'> {
  return {
    route: { manager: job.manager, site: '' },
    set: { GridResource: null, GridJobId: null, GridJobStatus: null, GryphusRoutedAt: null },
  };
}

/** A run that was stopped counts, as one that ended does: from its start until somebody wanted it stopped. */
function brokenOff(job: JobRecord): AttrTexts {
  const started = readNumber(job.attrs, 'JobCurrentStartDate');
  if (started === undefined || readString(job.attrs, 'GridJobStatus') === 'DONE') return {};
  const wall = Math.max(0, job.since - started);
  const before = readNumber(job.attrs, 'RemoteWallClockTime') ?? 0;
  return { RemoteWallClockTime: `${before + wall}.0`, LastRemoteWallClockTime: `${wall}.0` };
}
