import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { quoted, readNumber } from '../job/values.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import type { AttemptSpec, Outcomes, Refusal } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { fresh, gridJobId } from './attempt-attrs.ts';
import { candidatesIn, LEAVE_WITHIN_S } from './candidates.ts';
import { Book } from './book.ts';
import { type Again, BATCH, commitChanges, jobsIn, keyOf, type Sent, type SiteContext } from './context.ts';
import { narrowing } from '../job/faults.ts';
import { holdPrepared } from './hold-prepared.ts';
import { admitted, type ProxySource } from './proxies.ts';
import type { SubmitBudget } from './pacing.ts';
import { checkpointBack } from './checkpoint-destination.ts';
import { attemptSpec } from './spec.ts';
import { transferTimes } from './transfer-times.ts';
import { urlInputs } from './url-files.ts';

/** How long to wait before asking a site again that refused with kind 'later', milliseconds. */
const LATER_MS = 15_000;
/**
 * While inputs are being fetched: the fetch wakes this work loop when it is done, but the loop checks itself after this
 * time, milliseconds.
 */
const COMING_MS = 2000;

/** Jobs that one round takes; while they are being committed, the next round prepares as many. */
const PIECE = 500;

export interface SubmitState {
  readonly budget: SubmitBudget;
  /** The previous round's commit, whose result the next round awaits. */
  committing: Promise<Committed> | undefined;
  /** Number of jobs at the site in the states that our `queued` limit counts. */
  readonly placed: () => Promise<number>;
  /** Number of those that may be in the site's queue, which the site's own limits count. */
  readonly there: () => Promise<number>;
}

/**
 * Takes idle jobs while the site has capacity, prepares what was taken, and commits what was prepared: one batch of each,
 * including candidates.
 */
export async function submitRound(ctx: SiteContext, state: SubmitState): Promise<Again> {
  await ctx.proxies.refresh(ctx);
  const begun = (await jobsIn(ctx, 'preparing')).map((job) => sent(ctx, job));
  const candidates = await candidatesIn(
    ctx,
    'preparing',
    Math.min(BATCH - begun.length, state.budget.available(ctx.now())),
  );
  state.budget.spend(candidates.length);
  const free = Math.min(PIECE, BATCH - begun.length - candidates.length);
  const taken = (free > 0 ? await take(ctx, state, free) : []).map((job) => sent(ctx, job));
  const prepared = await prepare(ctx, [...begun, ...candidates, ...taken]);
  const before = await lastCommit(state);
  const committing = before.laterMs === undefined ? commitPrepared(ctx, state) : Promise.resolve(before);
  if (taken.length === PIECE && !prepared.later) {
    state.committing = committing;
    // The next round handles the error.
    committing.catch(() => undefined);
    return 0;
  }
  const committed = await committing;
  if (prepared.later) return LATER_MS;
  if (committed.laterMs !== undefined) return committed.laterMs;
  if (prepared.coming && prepared.done + committed.done === 0) return COMING_MS;
  if (begun.length + candidates.length + taken.length > 0 || committed.done > 0) return 0;
  return waitFor(ctx, state);
}

async function lastCommit(state: SubmitState): Promise<Committed> {
  const last = state.committing;
  state.committing = undefined;
  return (await last) ?? { done: 0, laterMs: undefined };
}

async function commitPrepared(ctx: SiteContext, state: SubmitState): Promise<Committed> {
  const ready = (await jobsIn(ctx, 'prepared')).map((job) => sent(ctx, job));
  const committed = await commit(ctx, state, [...ready, ...(await candidatesIn(ctx, 'prepared'))]);
  if (committed.done > 0) ctx.wake('watch');
  return committed;
}

function sent(ctx: SiteContext, job: JobRecord): Sent {
  return { key: keyOf(ctx, job), job };
}

/**
 * How long idle jobs have to wait for the submit budget or the backoff. Capacity comes with results, which wake this loop.
 */
async function waitFor(ctx: SiteContext, { budget, there }: SubmitState): Promise<Again> {
  const waiting = await jobsIn(ctx, 'idle', 1);
  const wait = Math.max(budget.waitMs(ctx.now()), ctx.backoff.waitMs(await there(), ctx.now()));
  return waiting.length > 0 && wait > 0 ? wait : undefined;
}

async function take(ctx: SiteContext, { budget, placed, there }: SubmitState, most: number): Promise<JobRecord[]> {
  const [begun, atSite] = await Promise.all([placed(), there()]);
  // Jobs already taken but not yet at the site have priority.
  const welcome = ctx.backoff.available(atSite, ctx.now()) - Math.max(0, begun - atSite);
  const free = Math.min(most, ctx.record.limits.queued - begun, budget.available(ctx.now()), welcome);
  if (free <= 0) return [];
  const idle = (await admitted(ctx, await jobsIn(ctx, 'idle', free))).map(({ job }) => job);
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

interface Step {
  readonly done: number;
  readonly later: boolean;
  /** Some inputs are still being fetched. */
  readonly coming?: boolean;
}

async function prepare(ctx: SiteContext, sent: readonly Sent[]): Promise<Step> {
  const ready = await admittedOf(ctx, sent);
  if (ready.length === 0) return { done: 0, later: sent.length > 0 };
  const book = new Book(ctx);
  let coming = 0;
  const specs: (AttemptSpec | undefined)[] = [];
  const proxies = await sendProxies(ctx, new Set(ready.flatMap(({ proxy }) => proxy ?? [])));
  await Promise.all(
    ready.map(async ({ one, proxy }, i) => {
      const name = proxy && proxies.get(proxy.name);
      const spec = name instanceof GryphusError ? name : await specOf(ctx, one, name).catch(faultOf(ctx, one));
      if (spec === undefined) book.later(one, TROUBLED);
      else if (typeof spec === 'string') {
        coming += 1;
        book.later(one, spec);
      } else if (spec instanceof GryphusError) book.unfit(one, spec);
      else if (one.candidate && !ctx.site.leave) book.refused(one, TAKES_NO_CANDIDATES);
      // Specs keep the queue's order, so the site receives them in that order.
      else specs[i] = spec;
    }),
  );
  crashPoint('gm.before-prepare');
  const began = ctx.now();
  const byKey = new Map(ready.map(({ one }) => [one.key, one]));
  const all = specs.flatMap((spec) => spec ?? []);
  const travelled = new Set(all.flatMap((spec) => (spec.cwd === undefined && !spec.shared ? [spec.key] : [])));
  const sentTo = await narrowing(all, (some) => send(ctx, byKey, some));
  crashPoint('gm.after-prepare');
  for (const [{ key }, thrown] of sentTo.failed) {
    const one = byKey.get(key);
    if (!one) continue;
    const error = ctx.troubles.met(one.job, `sending it to ${ctx.record.name}`, thrown);
    if (error) book.unfit(one, error);
    else book.later(one, TROUBLED);
  }
  const outcomes = new Map(sentTo.done.flatMap((some) => [...some]));
  const { later, arriving } = apply(ctx, outcomes, byKey, book, (one) => {
    const since = one.job.attrs.has('TransferringInput') ? readNumber(one.job.attrs, 'TransferInStarted') : undefined;
    const times = transferTimes('In', since === undefined ? began : since * 1000, ctx.now());
    const sent = travelled.has(one.key) ? { ...times, TransferringInput: null } : undefined;
    if (ctx.site.submit) book.step(one, 'committed', { ...sent, ...promised(ctx, one) });
    else book.step(one, 'prepared', sent);
  });
  await book.save();
  crashPoint('gm.saved-prepare');
  if (ctx.site.submit && book.done > 0) ctx.wake('watch');
  return { done: book.done, later, coming: coming > 0 || arriving };
}

const TROUBLED = 'an internal error of Gryphus; it will be retried';

/** A job's own error holds it; after an unexpected error it is tried again later, until that has failed too often. */
function faultOf(ctx: SiteContext, one: Sent): (thrown: unknown) => GryphusError | undefined {
  return (thrown) =>
    thrown instanceof GryphusError && thrown.code !== 'internal'
      ? thrown
      : ctx.troubles.met(one.job, 'describing it for its site', thrown);
}

const TAKES_NO_CANDIDATES: Refusal = {
  kind: 'never',
  code: 'site-refused',
  message: 'it cannot make a job wait for permission to start, so it cannot run flooded jobs.',
};

/**
 * Sends the specs of jobs that are still wanted. A job removed since it was read is not sent: nothing would ever clean
 * up its attempt at the site.
 */
async function send(
  ctx: SiteContext,
  byKey: ReadonlyMap<AttemptKey, Sent>,
  specs: readonly AttemptSpec[],
): Promise<Outcomes> {
  if (specs.length === 0) return NONE;
  for (const { key } of specs) ctx.underway.add(key);
  try {
    const wanted = await stillWanted(
      ctx,
      specs.flatMap(({ key }) => byKey.get(key) ?? []),
    );
    const left = specs.filter(({ key }) => wanted.has(key));
    if (left.length === 0) return NONE;
    return await (ctx.site.submit?.(left) ?? ctx.site.prepare(left));
  } finally {
    for (const { key } of specs) ctx.underway.delete(key);
  }
}

const NONE: Outcomes = new Map();

async function stillWanted(ctx: SiteContext, all: readonly Sent[]): Promise<ReadonlySet<AttemptKey>> {
  const ids = all.filter(({ candidate }) => candidate === undefined).map(({ job }) => job.id);
  const jobs = (ids.length === 0 ? [] : await ctx.queue.get(ids)).filter(({ state }) => state === 'preparing');
  const flooded = all.flatMap(({ candidate }) => candidate?.id ?? []);
  const candidates = (await ctx.queue.candidates.of(flooded)).flatMap(({ open }) =>
    open.filter(({ state }) => state === 'preparing'),
  );
  return new Set([...jobs, ...candidates].map((one) => keyOf(ctx, one)));
}

/** The attempt's spec, or a message saying which of its inputs is still being fetched. */
async function specOf(
  ctx: SiteContext,
  { key, job, candidate }: Sent,
  proxy: string | undefined,
): Promise<AttemptSpec | string> {
  const urls = await urlInputs(ctx, job);
  if (typeof urls === 'string') return urls;
  const coming = await checkpointBack(ctx, job);
  if (coming !== undefined) return coming;
  const ioProxy = await ctx.ioProxy.of(ctx, job.attrs);
  const spec = { ...(await attemptSpec(ctx, key, job, proxy, urls)), ...(ioProxy && { ioProxy }) };
  if (!candidate) return spec;
  return { ...spec, leaveWithin: readNumber(job.attrs, 'GryphusLeaveWithin') ?? LEAVE_WITHIN_S };
}

async function admittedOf(
  ctx: SiteContext,
  all: readonly Sent[],
): Promise<readonly { readonly one: Sent; readonly proxy: ProxySource | undefined }[]> {
  const byJob = new Map(all.map((one) => [one.job, one]));
  const found = await admitted(ctx, [...byJob.keys()]);
  return found.flatMap(({ job, proxy }) => {
    const one = byJob.get(job);
    return one ? [{ one, proxy }] : [];
  });
}

/** Each proxy's name at the site, or why the site will never accept it. Throws if the site is unreachable. */
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

interface Committed {
  readonly done: number;
  /** Milliseconds after which to retry what could not be committed. */
  readonly laterMs: number | undefined;
}

async function commit(ctx: SiteContext, { there }: SubmitState, waiting: readonly Sent[]): Promise<Committed> {
  if (waiting.length === 0) return { done: 0, laterMs: undefined };
  const willing = (await admittedOf(ctx, waiting)).map(({ one }) => one);
  const may = new Set(willing);
  const stopped = waiting.filter((one) => one.candidate === undefined && !may.has(one));
  if (stopped.length > 0) await holdPrepared(ctx, stopped);
  if (willing.length === 0) return { done: 0, laterMs: LATER_MS };
  const atSite = await there();
  const free = ctx.backoff.available(atSite, ctx.now());
  const wait = (count: number) => Math.max(1000, ctx.backoff.waitMs(count, ctx.now()));
  if (free <= 0) return { done: 0, laterMs: wait(atSite) };
  const ready = willing.slice(0, free);
  const byKey = new Map(ready.map((one) => [one.key, one]));
  const book = new Book(ctx);
  crashPoint('gm.before-commit');
  const outcomes = await ctx.site.commit([...byKey.keys()]);
  crashPoint('gm.after-commit');
  const { later } = apply(ctx, outcomes, byKey, book, (one, batchId) =>
    book.step(one, 'committed', promised(ctx, one, batchId)),
  );
  await book.save();
  crashPoint('gm.saved-commit');
  const { taken, full } = await learn(ctx, atSite, outcomes);
  if (full || willing.length > free) return { done: book.done, laterMs: wait(atSite + taken) };
  return { done: book.done, laterMs: later ? LATER_MS : undefined };
}

/** The attributes of a job that the site has accepted. */
function promised(ctx: SiteContext, { job }: Sent, batchId?: string): AttrTexts {
  return { GridJobStatus: quoted('SUBMITTED'), ...gridJobId(ctx, job, batchId) };
}

/** Learns from accepted and refused jobs how many the site takes. */
async function learn(
  ctx: SiteContext,
  atSite: number,
  outcomes: Outcomes,
): Promise<{ readonly taken: number; readonly full: boolean }> {
  const all = [...outcomes.values()];
  const taken = all.filter(({ ok }) => ok).length;
  const message = all.flatMap((one) => (!one.ok && one.refusal.code === 'site-full' ? [one.refusal.message] : []))[0];
  if (taken > 0) await ctx.backoff.taken(atSite + taken, ctx.now());
  if (message !== undefined) await ctx.backoff.full(atSite + taken, message, ctx.now());
  return { taken, full: message !== undefined };
}

/**
 * Enters the outcomes in the book. Returns whether the site said "later" for any, and whether any inputs are still
 * being transferred.
 */
function apply(
  ctx: SiteContext,
  outcomes: Outcomes,
  byKey: ReadonlyMap<AttemptKey, Sent>,
  book: Book,
  good: (one: Sent, batchId: string | undefined) => void,
): { readonly later: boolean; readonly arriving: boolean } {
  let [later, arriving] = [false, false];
  for (const [key, outcome] of outcomes) {
    const one = byKey.get(key);
    if (!one) continue;
    if (outcome.ok) good(one, outcome.batchId);
    else if (outcome.refusal.kind === 'never' || outcome.refusal.code === 'disk-full')
      book.refused(one, outcome.refusal);
    else if (outcome.refusal.kind === 'gone') book.step(one, 'lost');
    else if (outcome.refusal.code === 'arriving') {
      arriving = true;
      book.arriving(one, outcome.refusal.message, ctx.now());
    } else {
      later = true;
      book.later(one, outcome.refusal.message);
    }
  }
  return { later, arriving };
}

function asRefusal(thrown: unknown): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  throw thrown;
}
