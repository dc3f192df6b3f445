import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { QueueMark } from '../job/mark.ts';
import type { Change, JobRecord, Queue } from '../queue/api.ts';
import { commitChanges, keyOf, type SiteContext } from './context.ts';
import { GRID_FAILED, holdAttributes } from '../job/hold.ts';

/** A job whose id was used before starts with attempt numbers that the earlier job cannot have reached. */
const FIRST_ATTEMPTS = 1_000_000;

/**
 * Runs before anything is done at a site: checks whether the site has seen a later state of this queue. If so, an older
 * copy of the queue was restored (a backup, a snapshot, a disk that lost its last writes). A job without an attempt at
 * the site may have run there in the meantime and been deleted, so it is held for the user to decide. Jobs whose
 * attempts the site knows continue.
 */
export async function checkCopy(ctx: SiteContext): Promise<void> {
  const seen = await ctx.site.lastMark?.();
  const last = seen && (await ctx.queue.divergence(seen));
  if (seen === undefined || last === undefined) return;
  await ctx.queue.skipClusters(seen.cluster);
  const { reports, complete } = await ctx.site.poll({ cursor: undefined, follow: [] });
  if (!complete) throw new GryphusError('site-busy', `Site ${ctx.record.name} did not report all that it holds.`);
  const known = new Set(reports.map(({ key }) => key));
  const changes: Change[] = [];
  for await (const job of ctx.queue.query({ manager: ctx.manager, states: ['idle', 'preparing', 'prepared'] })) {
    if (job.site !== ctx.record.name && (job.site !== '' || job.state !== 'idle')) continue;
    const change = job.id.cluster > last ? renumbered(job) : doubted(ctx, job, known);
    if (change) changes.push(change);
  }
  for (let from = 0; from < changes.length; from += 1000) await commitChanges(ctx, changes.slice(from, from + 1000));
  if (changes.some(({ from }) => from !== 'idle')) ctx.wake('cancel');
  // Last, so that everything is repeated if this is interrupted.
  await ctx.site.keepMark?.(await ctx.queue.mark());
}

function doubted(ctx: SiteContext, job: JobRecord, known: ReadonlySet<AttemptKey>): Change | undefined {
  if (job.state !== 'idle' && known.has(keyOf(ctx, job))) return undefined;
  const { name } = ctx.record;
  const reason =
    `This queue is an older copy: site ${name} has received later changes (was a backup restored?). Whether the job ran ` +
    `in the meantime cannot be known. \`gryphus site audit ${name}\` shows what is there; a release runs it`;
  return { id: job.id, from: job.state, attempt: job.attempt, event: 'hold', set: holdAttributes(reason, GRID_FAILED) };
}

/** The job was submitted after the copy was restored, with an id that another job had before. */
function renumbered({ id, state, attempt }: JobRecord): Change | undefined {
  if (state !== 'idle' || attempt >= FIRST_ATTEMPTS) return undefined;
  return { id, from: 'idle', attemptsFrom: FIRST_ATTEMPTS };
}

/**
 * Returns a function that gives marks for the sites. It throws 'stale-epoch' if the queue was replaced by an older copy
 * of itself while this process was running.
 */
export function guardedMarks(queue: Pick<Queue, 'mark' | 'divergence'>): () => Promise<QueueMark> {
  let last: QueueMark | undefined;
  return async () => {
    const now = await queue.mark();
    if (last !== undefined && last.run !== now.run && (await queue.divergence(last)) !== undefined) {
      throw new GryphusError('stale-epoch', 'The queue was replaced by an older copy of itself; this process ends.');
    }
    last = now;
    return now;
  };
}
