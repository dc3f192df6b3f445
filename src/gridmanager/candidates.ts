import type { CandidateState } from '../job/candidate-life.ts';
import { type AttemptKey, formatJobId, type JobId, parseAttemptKey } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import { quoted } from '../job/values.ts';
import type { Candidate, CandidateStep, Change, JobRecord } from '../queue/api.ts';
import type { Report } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { fresh, gridJobId } from './attempt-attrs.ts';
import { BATCH, commitCandidateSteps, commitChanges, keyOf, type Sent, type SiteContext } from './context.ts';
import { reportMessage } from './report.ts';

/** How long a candidate waits at its site for permission to start before it returns to the site's queue, seconds. */
export const LEAVE_WITHIN_S = 900;

/** The candidates of this site in `state`, each with its job. Candidates whose job has left the queue are omitted. */
export async function candidatesIn(ctx: SiteContext, state: CandidateState, limit = BATCH): Promise<readonly Sent[]> {
  if (limit <= 0) return [];
  const candidates = await ctx.queue.candidates.next({ manager: ctx.manager, site: ctx.record.name, state, limit });
  const jobs = await jobsOf(ctx, candidates);
  return candidates.flatMap((candidate) => {
    const job = jobs.get(formatJobId(candidate.id));
    const one = job && { key: keyOf(ctx, candidate), job: { ...job, attempt: candidate.attempt }, candidate };
    return one && !ctx.troubles.isResting(one.job) ? [one] : [];
  });
}

export interface Heard {
  /** Reports of candidates whose commit is not recorded in the queue yet. */
  readonly early: readonly Report[];
  readonly changed: boolean;
}

/**
 * Processes a site's reports of candidates. The first candidate of a job that asks to start becomes the job's attempt,
 * in one step in the queue; only then is the site told. `all`: the reports list every attempt that the site has.
 */
export async function hearCandidates(ctx: SiteContext, reports: readonly Report[], all: boolean): Promise<Heard> {
  const candidates = await candidatesNamed(ctx, reports, all);
  const steps: CandidateStep[] = [];
  const asking: { readonly candidate: Candidate; readonly report: Report }[] = [];
  const early: Report[] = [];
  const said = new Set<AttemptKey>();
  for (const report of reports) {
    const candidate = candidates.get(report.key);
    said.add(report.key);
    if (candidate && isEarly(candidate.state, report)) early.push(report);
    if (candidate?.state !== 'waiting') continue;
    if (report.is === 'asking') asking.push({ candidate, report });
    const step = stepOf(candidate, report);
    if (step) steps.push(step);
  }
  if (all) {
    for (const [key, candidate] of candidates) {
      // Without permission it cannot have started.
      if (candidate.state === 'waiting' && !said.has(key))
        steps.push({ ...of(candidate), event: 'lost', message: 'The site has no record of it.' });
    }
  }
  await commitCandidateSteps(ctx, steps);
  if (steps.some(({ event }) => event === 'lost')) ctx.wake('submit');
  if (steps.some(({ event }) => event === 'refused')) ctx.wake('cancel');
  await grant(ctx, asking);
  return { early, changed: asking.length > 0 || steps.some(({ event }) => event !== undefined) };
}

/**
 * Whether the report came before its commit was recorded in the queue. A site asks for permission only once, so the
 * question of an attempt that was considered lost and is being prepared again is kept too.
 */
export function isEarly(state: State | CandidateState, report: Report): boolean {
  if (state === 'preparing') return report.is === 'asking';
  return state === 'prepared' && report.is !== 'prepared';
}

function stepOf(candidate: Candidate, report: Report): CandidateStep | undefined {
  const message = reportMessage(report);
  switch (report.is) {
    case 'lost':
    case 'prepared':
      return { ...of(candidate), event: 'lost', message };
    case 'ended': {
      // It had no permission to start, so none of it ran: the site ended it in its queue.
      const why = report.how.kind === 'by-site' ? report.how.message : message;
      return { ...of(candidate), event: 'refused', message: `Site ${candidate.site}: ${why}` };
    }
    case 'queued':
    case 'held-by-site':
    case 'asking':
    case 'running':
    case 'suspended':
    case 'unclear':
      return candidate.message === message ? undefined : { ...of(candidate), message };
  }
}

function of(candidate: Candidate): { readonly id: JobId; readonly attempt: number } {
  return { id: candidate.id, attempt: candidate.attempt };
}

/** If several candidates ask at once, at any sites, the queue accepts one; for the others the transition fails. */
async function grant(
  ctx: SiteContext,
  asking: readonly { readonly candidate: Candidate; readonly report: Report }[],
): Promise<void> {
  const jobs = await jobsOf(
    ctx,
    asking.map(({ candidate }) => candidate),
  );
  const rivals = new Map(
    (await ctx.queue.candidates.of(asking.map(({ candidate }) => candidate.id))).map(({ id, open }) => [
      formatJobId(id),
      open.length,
    ]),
  );
  const granted = asking.flatMap(({ candidate, report }) => {
    const job = jobs.get(formatJobId(candidate.id));
    if (!job) return [];
    const { record } = ctx;
    const sites = rivals.get(formatJobId(candidate.id)) ?? 1;
    const change: Change = {
      id: candidate.id,
      event: 'granted',
      from: 'idle',
      candidate: candidate.attempt,
      set: {
        ...fresh(job),
        GridResource: quoted(`batch ${record.batch} ${record.name}`),
        GridJobStatus: quoted(reportMessage(report)),
        GryphusChoice: quoted(`the first of ${sites} ${sites === 1 ? 'site' : 'sites'} with free capacity`),
        ...gridJobId(ctx, { ...job, attempt: candidate.attempt }, 'batchId' in report ? report.batchId : undefined),
      },
    };
    return [{ candidate, change }];
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
    granted.flatMap(({ candidate }, i) => (results[i]?.ok ? [keyOf(ctx, candidate)] : [])),
  );
  crashPoint('gm.after-grant');
  ctx.wake('cancel');
}

/**
 * Gives permission to start to attempts whose grant is recorded. If the site no longer has one, its next report says
 * so.
 */
export async function giveLeave(ctx: SiteContext, keys: readonly AttemptKey[]): Promise<void> {
  if (keys.length > 0) await ctx.site.leave?.(keys);
}

async function candidatesNamed(
  ctx: SiteContext,
  reports: readonly Report[],
  all: boolean,
): Promise<ReadonlyMap<AttemptKey, Candidate>> {
  const { manager, record } = ctx;
  const waiting = all ? await ctx.queue.candidates.next({ manager, site: record.name, state: 'waiting' }) : [];
  const candidates = new Map<AttemptKey, Candidate>(waiting.map((candidate) => [keyOf(ctx, candidate), candidate]));
  const ids = reports.flatMap(({ key }) => {
    const attempt = parseAttemptKey(key);
    return attempt?.agent === ctx.agent && !candidates.has(key)
      ? [{ cluster: attempt.cluster, proc: attempt.proc }]
      : [];
  });
  for (const { open } of await ctx.queue.candidates.of(ids)) {
    for (const candidate of open)
      if (candidate.manager === manager && candidate.site === record.name)
        candidates.set(keyOf(ctx, candidate), candidate);
  }
  return candidates;
}

async function jobsOf(ctx: SiteContext, candidates: readonly Candidate[]): Promise<ReadonlyMap<string, JobRecord>> {
  const jobs = candidates.length === 0 ? [] : await ctx.queue.get(candidates.map(({ id }) => id));
  return new Map(jobs.map((job) => [formatJobId(job.id), job]));
}
