import { type AttrTexts, withAttrs } from '../job/attrs.ts';
import { batchIdOf } from '../job/batch-id.ts';
import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import { LIFE } from '../job/life.ts';
import { quoted, readNumber } from '../job/values.ts';
import type { Change, ChangeResult, JobRecord } from '../queue/api.ts';
import type { PollAnswer, Report } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { gridJobId } from './attempt-attrs.ts';
import { giveLeave, hearCandidates, isEarly } from './candidates.ts';
import { type Again, commitChanges, keyOf, type SiteContext } from './context.ts';
import { endingAttributes } from './endings.ts';
import { Followed } from './followed.ts';
import { holdAttributes } from '../job/hold.ts';
import { placeStreams, stepsAfter, streamsToPlace } from './nothing-to-fetch.ts';
import { nodesEnded, nodesStarted } from './node-attributes.ts';
import { nextPoll } from './pacing.ts';
import { letForget } from './results-loop.ts';
import { againOf, runAttributes } from './again.ts';
import { AT_SITE, eventOf, reportMessage } from './report.ts';
import { suspensionAttributes } from './suspensions.ts';

/** What the work loop remembers between polls; losing it costs one complete poll. */
export interface WatchState {
  cursor: string | undefined;
  /** Reports were ignored, so the next poll must be complete. */
  afresh: boolean;
  pollMs: number;
  /** Reports that came before their commit was recorded here: processed again in the next round. */
  early: readonly Report[];
  /**
   * Reports that could not be recorded yet, because of an unexpected error or because the job is being submitted again.
   * Kept, because the site sends each only once.
   */
  unrecorded: readonly Report[];
  readonly followed: Followed;
}

export function freshWatch(ctx: SiteContext): WatchState {
  return {
    cursor: undefined,
    afresh: false,
    pollMs: ctx.record.limits.pollMin * 1000,
    early: [],
    unrecorded: [],
    followed: new Followed(),
  };
}

/**
 * One poll for all of the site's jobs. Without a cursor the site lists every attempt it has, and each of our jobs is
 * reconciled with the list: after any crash, this one exchange recovers everything.
 */
export async function watchRound(ctx: SiteContext, state: WatchState): Promise<Again> {
  if (state.afresh) state.cursor = undefined;
  state.afresh = false;
  const expected = state.cursor === undefined ? await jobsAtSite(ctx) : undefined;
  if (expected) await state.followed.recover(ctx, expected);
  const answer = await ctx.site.poll({
    cursor: state.cursor,
    follow: state.followed.next(),
    ...(expected ? { promised: new Map([...expected].map(([key, job]) => [key, batchIdOf(job.attrs)])) } : {}),
    waitMs: state.cursor === undefined ? 0 : state.early.length > 0 ? EARLY_MS : await patience(ctx, state),
    restMs: ctx.quietMs(),
  });
  crashPoint('gm.after-poll');
  const streamed = await state.followed.store(ctx, answer);
  const changed = await record(ctx, state, answer, expected);
  crashPoint('gm.saved-poll');
  state.cursor = answer.cursor;
  // The site lost its state: the next poll reconciles each of our jobs with what it has.
  if (answer.complete && !expected) state.afresh = true;
  state.pollMs = nextPoll(state.pollMs, changed || streamed > 0, {
    pollMinMs: Math.max(ctx.record.limits.pollMin * 1000, ctx.quietMs() / SOONER),
    pollMaxMs: Math.max(ctx.record.limits.pollMax * 1000, ctx.quietMs()),
  });
  // The waiting is done inside the poll, so that the site's reports end it.
  return 0;
}

/** Polling times while a user follows a job's output, and while jobs write output; milliseconds. */
const FOLLOWED_MS = 500;
const STREAMING_MS = 5000;
/** With many sites, so much sooner than when it has been quiet for long is a site polled after a change. */
const SOONER = 8;
/** Polling time while the commit for an early report is being recorded, milliseconds. */
const EARLY_MS = 50;

async function patience(ctx: SiteContext, state: WatchState): Promise<number> {
  if (state.followed.isHungry) return 0;
  if (state.followed.size === 0) return state.pollMs;
  if (await ctx.isFollowed()) return FOLLOWED_MS;
  // With many sites, what nobody looks at yet need not come home sooner than a change.
  return Math.min(state.pollMs, state.followed.streams ? STREAMING_MS : Math.max(STREAMING_MS, ctx.quietMs()));
}

async function jobsAtSite(ctx: SiteContext): Promise<ReadonlyMap<AttemptKey, JobRecord>> {
  const jobs = new Map<AttemptKey, JobRecord>();
  for await (const job of ctx.queue.query({ manager: ctx.manager, site: ctx.record.name, states: AT_SITE })) {
    jobs.set(keyOf(ctx, job), job);
  }
  return jobs;
}

async function record(
  ctx: SiteContext,
  state: WatchState,
  answer: PollAnswer,
  expected: ReadonlyMap<AttemptKey, JobRecord> | undefined,
): Promise<boolean> {
  const reports = latest([...state.unrecorded, ...state.early, ...answer.reports]);
  const others = reports.filter(({ key }) => !expected?.has(key));
  const jobs = new Map([...(expected ?? []), ...(await named(ctx, others))]);
  const changes: Change[] = [];
  /** The report that each change comes from, by index in `changes`. */
  const sources: Report[] = [];
  const said = new Set<AttemptKey>();
  const early: Report[] = [];
  const unrecorded: Report[] = [];
  const heard: Report[] = [];
  const asking: AttemptKey[] = [];
  const ends: End[] = [];
  for (const report of reports) {
    said.add(report.key);
    const found = jobs.get(report.key);
    if (found && isEarly(found.state, report)) early.push(report);
    if (found?.state === 'preparing' && RAN.has(report.is)) (ctx.site.submit ? early : unrecorded).push(report);
    if (!found || LIFE[found.state].does !== 'watch') continue;
    if (ctx.troubles.isResting(found)) {
      unrecorded.push(report);
      continue;
    }
    heard.push(report);
    try {
      const back = againOf(ctx, found, report);
      if (back) {
        // The next run writes its streams from the start.
        state.followed.drop(report.key);
        await ctx.urls.growing.restart(report.key, found.id);
        await ctx.spool.remove(report.key);
        sources[changes.push(back) - 1] = report;
      }
      const job = back
        ? { ...found, state: 'committed' as const, attrs: withAttrs(found.attrs, back.set ?? {}) }
        : found;
      const change = changeOf(ctx, job, report);
      if (change) sources[changes.push(change) - 1] = report;
      if (change?.event === 'ended') ends.push({ job, report, change });
    } catch (thrown) {
      // The job runs or has run, so it is not held because of the error.
      ctx.troubles.met(found, "recording the site's report", thrown);
      unrecorded.push(report);
    }
    // Its grant is recorded, but the permission did not reach the site.
    if (report.is === 'asking') asking.push(report.key);
    if (report.is === 'running') state.followed.add(ctx, report.key, found);
    else if (report.is === 'ended' || report.is === 'lost') state.followed.drop(report.key);
  }
  if (expected && answer.complete) {
    for (const [key, job] of expected) if (!said.has(key)) changes.push(forgotten(ctx, job));
  }
  /** Jobs whose whole end is in `changes`, by the index of the last change. */
  const decidedAt = new Map<number, JobRecord>();
  const further = await Promise.all(ends.map((end) => stepsOf(ctx, end)));
  for (const [i, steps] of further.entries()) {
    const job = ends[i]?.job;
    if (job && steps.length > 0) decidedAt.set(changes.push(...steps) - 1, job);
  }
  const results = await commitChanges(ctx, changes);
  // Another work loop or a user acted first. The site does not repeat its report, so it is evaluated again in the new
  // state.
  for (const [at, report] of sources.entries()) if (results[at]?.ok === false) early.push(report);
  await ctx.backoff.heard(heard, ctx.now());
  await giveLeave(ctx, asking);
  const ofCandidates = reports.filter(({ key }) => !jobs.has(key));
  const candidates = await hearCandidates(ctx, ofCandidates, expected !== undefined && answer.complete);
  state.early = [...early, ...candidates.early];
  state.unrecorded = unrecorded;
  const over = [...decidedAt].flatMap(([i, job]): JobRecord[] => {
    const result = results[i];
    return result?.ok ? [{ ...job, state: result.state }] : [];
  });
  // What the site cannot delete now is left to the results loop.
  const left: readonly ChangeResult[] = await letForget(ctx, over).catch(() => []);
  const home = left.filter(({ ok }) => ok).length;
  const wanted = changes.filter(({ event }) => event === 'ended' || event === 'refused').length;
  if (wanted > home) ctx.wake('results');
  if (over.length > 0) ctx.wake('submit');
  if (changes.some((change) => change.event === 'lost')) ctx.wake('submit');
  return candidates.changed || changes.some((change) => change.event !== undefined);
}

interface End {
  readonly job: JobRecord;
  readonly report: Report;
  readonly change: Change;
}

/** What follows the end at once; nothing if there is something to fetch first. */
async function stepsOf(ctx: SiteContext, { job, report, change }: End): Promise<readonly Change[]> {
  try {
    const streams = streamsToPlace(ctx, job, report);
    const placed = streams && (await placeStreams(ctx, report.key, job, streams));
    return stepsAfter(ctx, job, report, change, placed);
  } catch (thrown) {
    // The results loop goes on from the recorded end.
    ctx.troubles.met(job, "recording the site's report", thrown);
    return [];
  }
}

/**
 * Reports that show that an attempt considered lost, whose job is being submitted again, still existed. The site sends
 * each change once, so they are kept until the job is committed again.
 */
const RAN: ReadonlySet<Report['is']> = new Set(['running', 'suspended', 'ended']);

/** The last report of each attempt. */
function latest(reports: readonly Report[]): readonly Report[] {
  return [...new Map(reports.map((report) => [report.key, report])).values()];
}

/** The jobs named in a partial answer, by their current attempt; reports of older attempts are dropped. */
async function named(ctx: SiteContext, reports: readonly Report[]): Promise<ReadonlyMap<AttemptKey, JobRecord>> {
  const ids = reports.flatMap((report) => {
    const attempt = parseAttemptKey(report.key);
    return attempt?.agent === ctx.agent ? [{ cluster: attempt.cluster, proc: attempt.proc }] : [];
  });
  const jobs = ids.length === 0 ? [] : await ctx.queue.get(ids);
  return new Map(
    jobs
      .filter((job) => job.manager === ctx.manager && job.site === ctx.record.name)
      .map((job) => [keyOf(ctx, job), job] as const),
  );
}

/** What a report changes in the job; `undefined` if it brings nothing new. */
export function changeOf(ctx: SiteContext, job: JobRecord, report: Report): Change | undefined {
  const event = eventOf(report, job.state);
  const message = quoted(reportMessage(report));
  const set: Record<string, string | null> = {};
  if (job.attrs.get('GridJobStatus') !== message) set['GridJobStatus'] = message;
  if ('batchId' in report && report.batchId !== undefined) {
    const id = gridJobId(ctx, job, report.batchId);
    if (job.attrs.get('GridJobId') !== id['GridJobId']) Object.assign(set, id);
  }
  if (event !== undefined && job.state.startsWith('unknown')) set['GridResourceUnavailableTime'] = null;
  const started = readNumber(job.attrs, 'JobCurrentStartDate') !== undefined;
  Object.assign(set, runAttributes(job, report), suspensionAttributes(job.attrs, event, report, seconds(ctx)));
  // If the job was suspended or its site silent, its start has been counted already.
  if (event === 'started' && !started) Object.assign(set, startAttributes(ctx, job, report));
  if (event === 'ended' && report.is === 'ended') {
    if (!started) Object.assign(set, startAttributes(ctx, job, report));
    Object.assign(set, endingAttributes(report, beforeOf(job), seconds(ctx)), nodesEnded(report));
  }
  if (event === undefined && Object.keys(set).length === 0) return undefined;
  return {
    id: job.id,
    from: job.state,
    attempt: job.attempt,
    set,
    ...(event === undefined ? {} : { event }),
    ...(report.is === 'ended' && report.usage ? { info: { usage: { ...report.usage } } } : {}),
  };
}

export function startAttributes(ctx: SiteContext, job: JobRecord, report: Report): AttrTexts {
  const since = report.is === 'running' ? report.since : report.is === 'ended' ? report.startedAt : undefined;
  if (report.is === 'ended' && since === undefined && report.how.kind === 'by-site') return {};
  // As in HTCondor, rounded down, so that it is never in the future, even for a job that ends within the same second.
  const at = String(Math.floor(since ?? seconds(ctx)));
  const host = (report.is === 'running' || report.is === 'ended' ? report.host : undefined) ?? ctx.record.name;
  return {
    JobCurrentStartDate: at,
    JobCurrentStartExecutingDate: at,
    ...(job.attrs.has('JobStartDate') ? {} : { JobStartDate: at }),
    NumJobStarts: String((readNumber(job.attrs, 'NumJobStarts') ?? 0) + 1),
    RemoteHost: quoted(host),
    ...nodesStarted(report),
  };
}

/**
 * The site has lost a job that it accepted. Whether it ran cannot be known, so the job is held for the user to decide.
 */
function forgotten(ctx: SiteContext, job: JobRecord): Change {
  const reason = `Site ${ctx.record.name} has no record of the job any more; whether it ran there cannot be known.`;
  return { id: job.id, from: job.state, attempt: job.attempt, event: 'refused', set: holdAttributes(reason, 37) };
}

function beforeOf(job: JobRecord): Parameters<typeof endingAttributes>[1] {
  const number = (name: string) => readNumber(job.attrs, name);
  return {
    startedAt: number('JobCurrentStartDate'),
    wallClock: number('RemoteWallClockTime') ?? 0,
    userCpu: number('CumulativeRemoteUserCpu') ?? 0,
    systemCpu: number('CumulativeRemoteSysCpu') ?? 0,
    completions: number('NumJobCompletions') ?? 0,
  };
}

function seconds(ctx: SiteContext): number {
  return Math.floor(ctx.now() / 1000);
}
