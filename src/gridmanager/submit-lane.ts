import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { quoted } from '../job/values.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import type { AttemptSpec, Outcomes } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Again, BATCH, commitChanges, jobsIn, keyOf, type SiteContext } from './context.ts';
import { holdByError, holdByRefusal } from './hold.ts';
import { admitted, type ProxySource } from './proxies.ts';
import type { SubmitBudget } from './pacing.ts';
import { attemptSpec } from './spec.ts';
import { urlInputs } from './url-files.ts';

/** A site that says "later" is asked again after so long, milliseconds. */
const LATER_MS = 15_000;
/** Inputs that are being fetched wake this lane when they are here; at most so long later, milliseconds, it looks itself. */
const COMING_MS = 2000;

export interface SubmitState {
  readonly budget: SubmitBudget;
  /** Jobs that have a place at the site now, in the states that its limit counts. */
  readonly placed: () => Promise<number>;
}

/** Takes idle jobs as the site has room, prepares what is taken, commits what is prepared: one batch of each. */
export async function submitRound(ctx: SiteContext, state: SubmitState): Promise<Again> {
  await ctx.proxies.refresh(ctx);
  const begun = await jobsIn(ctx, 'preparing');
  const taken = begun.length < BATCH ? await take(ctx, state, BATCH - begun.length) : [];
  const prepared = await prepare(ctx, [...begun, ...taken]);
  const committed = await commit(ctx, await jobsIn(ctx, 'prepared'));
  if (committed.done > 0) ctx.wake('watch');
  if (prepared.later || committed.later) return LATER_MS;
  if (prepared.coming && prepared.done + committed.done === 0) return COMING_MS;
  if (begun.length + taken.length > 0 || committed.done > 0) return 0;
  return waitFor(ctx, state);
}

/** Idle jobs that had to stay: until the budget allows one; room comes with results, which wake this lane. */
async function waitFor(ctx: SiteContext, { budget }: SubmitState): Promise<Again> {
  const waiting = await jobsIn(ctx, 'idle', 1);
  const wait = budget.waitMs(ctx.now());
  return waiting.length > 0 && wait > 0 ? wait : undefined;
}

async function take(ctx: SiteContext, { budget, placed }: SubmitState, most: number): Promise<JobRecord[]> {
  const room = Math.min(most, ctx.record.limits.queued - (await placed()), budget.available(ctx.now()));
  if (room <= 0) return [];
  const idle = (await admitted(ctx, await jobsIn(ctx, 'idle', room))).map(({ job }) => job);
  if (idle.length === 0) return [];
  crashPoint('gm.before-take');
  const results = await commitChanges(
    ctx,
    idle.map((job): Change => ({ id: job.id, event: 'take', from: 'idle', set: fresh(job) })),
  );
  crashPoint('gm.saved-take');
  budget.spend(idle.length);
  return idle.flatMap((job, i) => {
    const result = results[i];
    return result?.ok ? [{ ...job, state: result.state, attempt: result.attempt }] : [];
  });
}

/** What an earlier attempt left in the ad and a new one must not show: it has not started, whatever that one did. */
function fresh({ attrs }: JobRecord): AttrTexts {
  const started = attrs.get('JobCurrentStartDate');
  return { ...FRESH, ...(started === undefined ? {} : { JobLastStartDate: started }) };
}

const FRESH = {
  JobCurrentStartDate: null,
  JobCurrentStartExecutingDate: null,
  GridJobId: null,
  GridJobStatus: null,
  ExitBySignal: null,
  ExitCode: null,
  ExitSignal: null,
  GryphusSiteCause: null,
  GryphusSiteWords: null,
} as const;

interface Step {
  readonly done: number;
  readonly later: boolean;
  /** Inputs of some are being fetched. */
  readonly coming?: boolean;
}

async function prepare(ctx: SiteContext, jobs: readonly JobRecord[]): Promise<Step> {
  const ready = await admitted(ctx, jobs);
  if (ready.length === 0) return { done: 0, later: jobs.length > 0 };
  const byKey = new Map<AttemptKey, JobRecord>(ready.map(({ job }) => [keyOf(ctx, job), job]));
  const specs: AttemptSpec[] = [];
  const coming: Change[] = [];
  const changes: Change[] = [];
  const proxies = await sendProxies(ctx, new Set(ready.flatMap(({ proxy }) => proxy ?? [])));
  const proxyOf = new Map(ready.map(({ job, proxy }) => [job, proxy && proxies.get(proxy.name)]));
  await Promise.all(
    [...byKey].map(async ([key, job]) => {
      const proxy = proxyOf.get(job);
      const spec = proxy instanceof GryphusError ? proxy : await specOf(ctx, key, job, proxy).catch(asRefusal);
      if (typeof spec === 'string') coming.push({ ...of(job), set: { GridJobStatus: quoted(`WAITING (${spec})`) } });
      else if (spec instanceof GryphusError) changes.push({ ...of(job), event: 'refused', set: holdByError(spec) });
      else specs.push(spec);
    }),
  );
  // The order of the queue is the order of the site's.
  const order = new Map([...byKey.keys()].map((key, i) => [key, i]));
  specs.sort((a, b) => (order.get(a.key) ?? 0) - (order.get(b.key) ?? 0));
  crashPoint('gm.before-prepare');
  const outcomes = specs.length > 0 ? await ctx.site.prepare(specs) : new Map();
  crashPoint('gm.after-prepare');
  const later = apply(ctx, outcomes, byKey, changes, (job) => ({ ...of(job), event: 'prepared' }));
  await commitChanges(ctx, [...changes, ...coming.filter((change) => isNews(change, jobs))]);
  crashPoint('gm.saved-prepare');
  if (changes.some((change) => change.event === 'refused')) ctx.wake('results');
  return { done: changes.length, later, coming: coming.length > 0 };
}

/** What the site needs to know; in words, what of the job's inputs is still on its way to us. */
async function specOf(
  ctx: SiteContext,
  key: AttemptKey,
  job: JobRecord,
  proxy: string | undefined,
): Promise<AttemptSpec | string> {
  const urls = await urlInputs(ctx, job);
  return typeof urls === 'string' ? urls : attemptSpec(ctx, key, job, proxy, urls);
}

/** The job does not say so already. */
function isNews({ id, set }: Change, jobs: readonly JobRecord[]): boolean {
  const job = jobs.find((one) => one.id.cluster === id.cluster && one.id.proc === id.proc);
  return job?.attrs.get('GridJobStatus') !== set?.['GridJobStatus'];
}

/** Each proxy's name at the site, or why the site will never have it; a site that is away is thrown. */
async function sendProxies(
  ctx: SiteContext,
  wanted: ReadonlySet<ProxySource>,
): Promise<ReadonlyMap<string, string | GryphusError>> {
  const sent = new Map<string, string | GryphusError>();
  for (const source of wanted) {
    if (sent.has(source.name)) continue;
    const name = await ctx.proxies.ensure(ctx, source).catch(asRefusal);
    if (name instanceof GryphusError && name.code !== 'missing-program' && name.code !== 'site-refused') throw name;
    sent.set(source.name, name);
  }
  return sent;
}

async function commit(ctx: SiteContext, waiting: readonly JobRecord[]): Promise<Step> {
  const jobs = (await admitted(ctx, waiting)).map(({ job }) => job);
  if (jobs.length === 0) return { done: 0, later: waiting.length > 0 };
  const byKey = new Map<AttemptKey, JobRecord>(jobs.map((job) => [keyOf(ctx, job), job]));
  const changes: Change[] = [];
  crashPoint('gm.before-commit');
  const outcomes = await ctx.site.commit([...byKey.keys()]);
  crashPoint('gm.after-commit');
  const later = apply(ctx, outcomes, byKey, changes, (job, batchId) => ({
    ...of(job),
    event: 'committed',
    set: { GridJobStatus: quoted('SUBMITTED'), ...gridJobId(ctx, job, batchId) },
  }));
  await commitChanges(ctx, changes);
  crashPoint('gm.saved-commit');
  if (changes.some((change) => change.event === 'refused')) ctx.wake('results');
  return { done: changes.length, later };
}

/** HTCondor's form: the resource's words, then the batch system's id. */
export function gridJobId(ctx: SiteContext, job: JobRecord, batchId: string | undefined): Record<string, string> {
  const { batch, name } = ctx.record;
  return {
    GridJobId: quoted(`batch ${batch} ${name} ${keyOf(ctx, job)}${batchId === undefined ? '' : ` ${batchId}`}`),
  };
}

/** Turns outcomes into changes; true when the site said "later" to one. */
function apply(
  ctx: SiteContext,
  outcomes: Outcomes,
  byKey: ReadonlyMap<AttemptKey, JobRecord>,
  changes: Change[],
  good: (job: JobRecord, batchId: string | undefined) => Change,
): boolean {
  let later = false;
  for (const [key, outcome] of outcomes) {
    const job = byKey.get(key);
    if (!job) continue;
    if (outcome.ok) changes.push(good(job, outcome.batchId));
    else if (outcome.refusal.kind === 'never' || outcome.refusal.code === 'disk-full') {
      changes.push({ ...of(job), event: 'refused', set: holdByRefusal(ctx.record.name, outcome.refusal) });
    } else if (outcome.refusal.kind === 'gone') changes.push({ ...of(job), event: 'lost' });
    else {
      later = true;
      changes.push({ ...of(job), set: { GridJobStatus: quoted(`WAITING (${outcome.refusal.message})`) } });
    }
  }
  return later;
}

function of(job: JobRecord): Pick<Change, 'id' | 'from' | 'attempt'> {
  return { id: job.id, from: job.state, attempt: job.attempt };
}

function asRefusal(thrown: unknown): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  throw thrown;
}
