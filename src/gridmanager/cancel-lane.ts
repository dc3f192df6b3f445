import type { AttemptKey } from '../job/ids.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Again, BATCH, commitChanges, jobsIn, keyOf, type SiteContext } from './context.ts';

const CANCELLING = ['removing', 'holding', 'restarting', 'withdrawing'] as const;
/** A site that could not confirm yet is asked again after so long, milliseconds. */
const LATER_MS = 5_000;

/** Withdraws attempts: when the site says that none can run any more, it forgets them, and the job goes on. */
export async function cancelRound(ctx: SiteContext): Promise<Again> {
  const jobs = (await Promise.all(CANCELLING.map((state) => jobsIn(ctx, state)))).flat();
  if (jobs.length === 0) return undefined;
  const byKey = new Map<AttemptKey, JobRecord>(jobs.map((job) => [keyOf(ctx, job), job]));
  crashPoint('gm.before-cancel');
  const outcomes = await ctx.site.cancel([...byKey.keys()]);
  crashPoint('gm.after-cancel');
  const withdrawn = [...outcomes].filter(([, outcome]) => outcome.ok).map(([key]) => key);
  const forgotten = withdrawn.length > 0 ? await ctx.site.forget(withdrawn) : new Map();
  const changes: Change[] = [];
  for (const [key, outcome] of forgotten) {
    const job = byKey.get(key);
    if (!job || !outcome.ok) continue;
    await ctx.spool.remove(key);
    changes.push({ id: job.id, from: job.state, attempt: job.attempt, event: 'withdrawn' });
  }
  await commitChanges(ctx, changes);
  crashPoint('gm.saved-cancel');
  ctx.wake('submit');
  if (changes.length < jobs.length) return LATER_MS;
  return jobs.length >= BATCH ? 0 : undefined;
}
