import { CREDENTIAL_HOLD } from '../credentials/watch/model.ts';
import { holdReason } from '../credentials/watch/usability.ts';
import type { AttemptKey } from '../job/ids.ts';
import { readNumber } from '../job/values.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import { commitChanges, type SiteContext } from './context.ts';
import { holdAttributes } from '../job/hold.ts';

/**
 * Holds jobs that are prepared at the site but must not be committed because their credential expires, as the
 * credential watch does with waiting jobs; the watch also releases them. If the answer to a commit was lost, the job
 * may have started, and a hold would kill it. So the site is asked first, and only jobs that it reports as prepared, or
 * does not have, are held.
 */
export async function holdPrepared(
  ctx: SiteContext,
  waiting: readonly { readonly key: AttemptKey; readonly job: JobRecord }[],
): Promise<void> {
  const looked = await Promise.all(
    waiting.map(async (one) => ({ ...one, found: (await ctx.gate.look(one.job, ctx.record)).usability })),
  );
  const ending = looked.flatMap(({ key, job, found }) => (found.is === 'ended' ? [{ key, job, found }] : []));
  if (ending.length === 0) return;
  const { reports, complete } = await ctx.site.poll({ cursor: undefined, follow: [] });
  const said = new Map(reports.map((report) => [report.key, report.is]));
  const changes = ending.flatMap(({ key, job, found }): Change[] => {
    const is = said.get(key);
    if (is !== 'prepared' && !(is === undefined && complete)) return [];
    const set = {
      ...holdAttributes(holdReason(found), CREDENTIAL_HOLD.code, found.subCode),
      NumHolds: String((readNumber(job.attrs, 'NumHolds') ?? 0) + 1),
    };
    return [{ id: job.id, from: job.state, attempt: job.attempt, event: 'hold', set }];
  });
  await commitChanges(ctx, changes);
  if (changes.length > 0) ctx.wake('cancel');
}
