import type { BidState } from '../job/bid-life.ts';
import { type AttemptKey, formatJobId, type JobId, parseAttemptKey } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import { quoted } from '../job/values.ts';
import type { Bid, BidStep, Change, JobRecord } from '../queue/api.ts';
import type { Report } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { fresh, gridJobId } from './attempt-attrs.ts';
import { BATCH, commitBidSteps, commitChanges, keyOf, type Sent, type SiteContext } from './context.ts';
import { wordsOf } from './report.ts';

/** How long a bid waits at its site for leave to start, in seconds, before it goes back into the site's queue. */
export const LEAVE_WITHIN_S = 900;

/** The bids of this site in `state`, each with its job; the job of one that has left the queue is left out. */
export async function bidsIn(ctx: SiteContext, state: BidState, limit = BATCH): Promise<readonly Sent[]> {
  if (limit <= 0) return [];
  const bids = await ctx.queue.bids.next({ manager: ctx.manager, site: ctx.record.name, state, limit });
  const jobs = await jobsOf(ctx, bids);
  return bids.flatMap((bid) => {
    const job = jobs.get(formatJobId(bid.id));
    const one = job && { key: keyOf(ctx, bid), job: { ...job, attempt: bid.attempt }, bid };
    return one && !ctx.troubles.isResting(one.job) ? [one] : [];
  });
}

export interface Heard {
  /** Of bids whose promise is not recorded here yet. */
  readonly early: readonly Report[];
  readonly changed: boolean;
}

/**
 * What a site says of bids. The first of a job's bids that asks for leave becomes the job's attempt, which is one step
 * in the queue; only then the site is told. `all`: the reports name every attempt that the site holds.
 */
export async function hearBids(ctx: SiteContext, reports: readonly Report[], all: boolean): Promise<Heard> {
  const bids = await bidsNamed(ctx, reports, all);
  const steps: BidStep[] = [];
  const asking: { readonly bid: Bid; readonly report: Report }[] = [];
  const early: Report[] = [];
  const said = new Set<AttemptKey>();
  for (const report of reports) {
    const bid = bids.get(report.key);
    said.add(report.key);
    if (bid && isEarly(bid.state, report)) early.push(report);
    if (bid?.state !== 'waiting') continue;
    if (report.is === 'asking') asking.push({ bid, report });
    const step = stepOf(bid, report);
    if (step) steps.push(step);
  }
  if (all) {
    for (const [key, bid] of bids) {
      // Without leave it cannot have started.
      if (bid.state === 'waiting' && !said.has(key))
        steps.push({ ...of(bid), event: 'lost', words: 'The site has no record of it.' });
    }
  }
  await commitBidSteps(ctx, steps);
  if (steps.some(({ event }) => event === 'lost')) ctx.wake('submit');
  if (steps.some(({ event }) => event === 'refused')) ctx.wake('cancel');
  await grant(ctx, asking);
  return { early, changed: asking.length > 0 || steps.some(({ event }) => event !== undefined) };
}

/**
 * The promise that the report belongs to is being written down. A question is said once, so that of an attempt that was taken
 * for lost and is on its way again is kept too.
 */
export function isEarly(state: State | BidState, report: Report): boolean {
  if (state === 'preparing') return report.is === 'asking';
  return state === 'prepared' && report.is !== 'prepared';
}

function stepOf(bid: Bid, report: Report): BidStep | undefined {
  const words = wordsOf(report);
  switch (report.is) {
    case 'lost':
    case 'prepared':
      return { ...of(bid), event: 'lost', words };
    case 'ended': {
      // It had no leave, so nothing of it ran: the site ended it in its queue.
      const why = report.how.kind === 'by-site' ? report.how.words : words;
      return { ...of(bid), event: 'refused', words: `Site ${bid.site}: ${why}` };
    }
    case 'queued':
    case 'held-by-site':
    case 'asking':
    case 'running':
    case 'suspended':
    case 'unclear':
      return bid.words === words ? undefined : { ...of(bid), words };
  }
}

function of(bid: Bid): { readonly id: JobId; readonly attempt: number } {
  return { id: bid.id, attempt: bid.attempt };
}

/** Of several bids that ask at once, at whatever sites, the queue takes one; the others find their job gone. */
async function grant(
  ctx: SiteContext,
  asking: readonly { readonly bid: Bid; readonly report: Report }[],
): Promise<void> {
  const jobs = await jobsOf(
    ctx,
    asking.map(({ bid }) => bid),
  );
  const rivals = new Map(
    (await ctx.queue.bids.of(asking.map(({ bid }) => bid.id))).map(({ id, open }) => [formatJobId(id), open.length]),
  );
  const granted = asking.flatMap(({ bid, report }) => {
    const job = jobs.get(formatJobId(bid.id));
    if (!job) return [];
    const { record } = ctx;
    const sites = rivals.get(formatJobId(bid.id)) ?? 1;
    const change: Change = {
      id: bid.id,
      event: 'granted',
      from: 'idle',
      bid: bid.attempt,
      set: {
        ...fresh(job),
        GridResource: quoted(`batch ${record.batch} ${record.name}`),
        GridJobStatus: quoted(wordsOf(report)),
        GryphusChoice: quoted(`the first of ${sites} ${sites === 1 ? 'site' : 'sites'} that had a place for it`),
        ...gridJobId(ctx, { ...job, attempt: bid.attempt }, 'batchId' in report ? report.batchId : undefined),
      },
    };
    return [{ bid, change }];
  });
  if (granted.length === 0) return;
  crashPoint('gm.before-grant');
  const results = await commitChanges(
    ctx,
    granted.map(({ change }) => change),
  );
  crashPoint('gm.saved-grant');
  await giveLeave(
    ctx,
    granted.flatMap(({ bid }, i) => (results[i]?.ok ? [keyOf(ctx, bid)] : [])),
  );
  crashPoint('gm.after-grant');
  ctx.wake('cancel');
}

/** Of attempts whose grant is recorded. What the site no longer has, its next report says. */
export async function giveLeave(ctx: SiteContext, keys: readonly AttemptKey[]): Promise<void> {
  if (keys.length > 0) await ctx.site.leave?.(keys);
}

async function bidsNamed(
  ctx: SiteContext,
  reports: readonly Report[],
  all: boolean,
): Promise<ReadonlyMap<AttemptKey, Bid>> {
  const { manager, record } = ctx;
  const waiting = all ? await ctx.queue.bids.next({ manager, site: record.name, state: 'waiting' }) : [];
  const bids = new Map<AttemptKey, Bid>(waiting.map((bid) => [keyOf(ctx, bid), bid]));
  const ids = reports.flatMap(({ key }) => {
    const attempt = parseAttemptKey(key);
    return attempt?.agent === ctx.agent && !bids.has(key) ? [{ cluster: attempt.cluster, proc: attempt.proc }] : [];
  });
  for (const { open } of await ctx.queue.bids.of(ids)) {
    for (const bid of open) if (bid.manager === manager && bid.site === record.name) bids.set(keyOf(ctx, bid), bid);
  }
  return bids;
}

async function jobsOf(ctx: SiteContext, bids: readonly Bid[]): Promise<ReadonlyMap<string, JobRecord>> {
  const jobs = bids.length === 0 ? [] : await ctx.queue.get(bids.map(({ id }) => id));
  return new Map(jobs.map((job) => [formatJobId(job.id), job]));
}
