import { basename, dirname } from 'node:path';
import { POOL_SITE, sharesHome } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { type AttemptKey, formatJobId } from '../job/ids.ts';
import type { Change, ChangeResult, JobRecord } from '../queue/api.ts';
import type { FetchedFile, FetchOutcome, FetchRequest, OddOutput } from '../site/contract.ts';
import { isOurDisk, makeParents, type Placement } from '../staging/place.ts';
import { placeAll } from '../staging/place-all.ts';
import { isUrl } from '../staging/url/file-url.ts';
import { quoted, readNumber, readString } from '../job/values.ts';
import { crashPoint } from '../util/crash-point.ts';
import { oneLine } from '../util/plain-text.ts';
import { type Again, BATCH, commitChanges, jobsIn, keyOf, type SiteContext } from './context.ts';
import { dropCheckpoints, sendCheckpoint } from './checkpoint-destination.ts';
import { decide } from './decide.ts';
import { statusAttributes } from './endings.ts';
import {
  checkpointFiles,
  destination,
  isCheckpoint,
  type JobFiles,
  jobFiles,
  leavesWork,
  wantsCheckpoint,
} from './files.ts';
import { isFault, narrowing } from '../job/faults.ts';
import { givenNames } from './given.ts';
import { holdAttributes, holdByError } from '../job/hold.ts';
import { withNode } from '../job/parallel-node.ts';
import { asWished } from '../job/moving.ts';
import { keepTransferLimit } from './transfer-limits.ts';
import { transferTimes } from './transfer-times.ts';
import { notPutThere } from './url-direct.ts';

/** How long to wait before asking again a site that could not give some results yet, milliseconds. */
const LATER_MS = 15_000;
/** How often to check on results that are being transferred, without asking the site; milliseconds. */
const COMING_MS = 1000;

/**
 * Fetches the results of finished jobs, decides what happens to each job, and lets the site delete its attempt: one
 * batch of each.
 */
export async function resultsRound(ctx: SiteContext): Promise<Again> {
  const finished = await jobsIn(ctx, 'finished');
  const home = await bringHome(ctx, finished);
  if (finished.some(({ attrs }) => isCheckpoint(attrs) || leavesWork(attrs))) await dropOldCheckpoints(ctx);
  const fetched = await jobsIn(ctx, 'fetched');
  await decideAll(ctx, fetched);
  const over = (
    await Promise.all((['completing', 'requeueing', 'stopping'] as const).map((s) => jobsIn(ctx, s)))
  ).flat();
  const forgotten = await letForget(ctx, over);
  if (over.length > 0) ctx.wake('submit');
  // The owner changed the wish for a job after it was read.
  if (forgotten.some((result) => !result.ok)) return 0;
  if (home.settled + home.arriving < finished.length) return LATER_MS;
  if (home.arriving > 0) return COMING_MS;
  return finished.length === BATCH || over.length >= BATCH ? 0 : undefined;
}

interface Home {
  readonly settled: number;
  /** Still being transferred in the background; other jobs need not wait for them. */
  readonly arriving: number;
}

async function bringHome(ctx: SiteContext, jobs: readonly JobRecord[]): Promise<Home> {
  if (jobs.length === 0) return { settled: 0, arriving: 0 };
  const here = sharesHome(ctx.record);
  const work = new Map<AttemptKey, { job: JobRecord; files: JobFiles }>(
    jobs.map((job) => [keyOf(ctx, job), { job, files: jobFiles(job.attrs, here) }]),
  );
  crashPoint('gm.before-fetch');
  const began = ctx.now();
  const { outcomes, failed } = await fetchFitting(ctx, work);
  crashPoint('gm.after-fetch');
  const changes: Change[] = [];
  await Promise.all(
    [...outcomes].map(async ([key, outcome]) => {
      const found = work.get(key);
      const change = found && (await settle(ctx, found.job, found.files, outcome, began));
      if (change) changes.push(change);
    }),
  );
  for (const [key, thrown] of failed) {
    const job = work.get(key)?.job;
    // Deleting the partial files makes space for others; the site still has all of them.
    await ctx.spool.remove(key);
    const change = job && kept(ctx, job, thrown);
    if (change) changes.push(change);
  }
  await commitChanges(ctx, changes);
  crashPoint('gm.saved-fetch');
  const settled = changes.filter(({ event }) => event !== undefined).length;
  return { settled, arriving: [...outcomes.values()].filter(isArriving).length };
}

/** Leaves the results at the site and holds the job; `undefined` if the transfer is to be retried. */
function kept(ctx: SiteContext, job: JobRecord, thrown: unknown): Change | undefined {
  const error = isOurDisk(thrown) ? thrown : ctx.troubles.met(job, 'bringing home the results', thrown);
  return error && { id: job.id, from: job.state, attempt: job.attempt, event: 'keep', set: holdByError(error) };
}

type Coming = ReadonlyMap<AttemptKey, { readonly job: JobRecord; readonly files: JobFiles }>;

interface Fetched {
  readonly outcomes: ReadonlyMap<AttemptKey, FetchOutcome>;
  readonly failed: ReadonlyMap<AttemptKey, unknown>;
}

/**
 * Fetches a batch. If our disk is too full for all of it, or one job causes an error, that job is isolated and the
 * others are fetched.
 */
async function fetchFitting(ctx: SiteContext, work: Coming): Promise<Fetched> {
  const failed = new Map<AttemptKey, unknown>();
  const requests = await Promise.all(
    [...work].map(async ([key, { job, files }]): Promise<FetchRequest | undefined> => {
      const asked = ctx.coming.get(key);
      if (asked) return asked;
      try {
        const wanted = await request(ctx, key, job, files);
        // A checkpoint is not a result yet.
        if (isCheckpoint(job.attrs) || leavesWork(job.attrs)) return wanted;
        return { ...wanted, outputs: await notPutThere(ctx, key, files, wanted.outputs) };
      } catch (thrown) {
        if (!isOnes(thrown)) throw thrown;
        failed.set(key, thrown);
        return undefined;
      }
    }),
  );
  const asked = requests.flatMap((one) => one ?? []);
  const fetched = await narrowing(asked, (some) => ctx.site.fetch(some), isOnes);
  const outcomes = new Map(fetched.done.flatMap((some) => [...some]));
  for (const one of asked) {
    const outcome = outcomes.get(one.key);
    if (outcome && isArriving(outcome)) ctx.coming.set(one.key, one);
    else ctx.coming.delete(one.key);
  }
  for (const [{ key }, thrown] of fetched.failed) failed.set(key, thrown);
  return { outcomes, failed };
}

function isOnes(thrown: unknown): boolean {
  return isOurDisk(thrown) || isFault(thrown);
}

function isArriving(outcome: FetchOutcome): boolean {
  return !outcome.ok && outcome.refusal.code === 'arriving';
}

async function request(ctx: SiteContext, key: AttemptKey, job: JobRecord, files: JobFiles): Promise<FetchRequest> {
  const image = leavesWork(job.attrs) && wantsCheckpoint(job.attrs);
  const outputs =
    image || isCheckpoint(job.attrs) ? checkpointFiles(job.attrs, files) : wantsOutputs(job) ? files.outputs : [];
  const saved = () => ctx.spool.checkpoints.filesFor(job.id, job.attempt);
  const results = !image && !isCheckpoint(job.attrs) && wantsOutputs(job);
  // New files at the top come anyway.
  const patterns = results ? files.patterns.filter((one) => outputs !== 'new' || one.includes('/')) : [];
  return {
    key,
    outputs,
    ...(patterns.length > 0 ? { patterns } : {}),
    ...(outputs === 'new' || patterns.length > 0 ? { given: await givenNames(files, await saved()) } : {}),
    stdout: files.stdout !== undefined,
    stderr: files.stderr !== undefined && files.stderr !== files.stdout,
    into: await ctx.spool.prepare(key),
  };
}

/**
 * `when_to_transfer_output`: a job that failed or was ended by its site may leave its output files there; stdout and
 * stderr are always transferred.
 */
function wantsOutputs({ attrs }: JobRecord): boolean {
  if (attrs.has('GryphusSiteCause')) return leavesWork(attrs);
  if (readString(attrs, 'WhenToTransferOutput')?.toUpperCase() !== 'ON_SUCCESS') return true;
  return readNumber(attrs, 'ExitCode') === (readNumber(attrs, 'JobSuccessExitCode') ?? 0);
}

/** `undefined`: the site could not give the results now; ask again. */
async function settle(
  ctx: SiteContext,
  job: JobRecord,
  files: JobFiles,
  outcome: FetchOutcome,
  began: number,
): Promise<Change | undefined> {
  const change = { id: job.id, from: job.state, attempt: job.attempt };
  const key = keyOf(ctx, job);
  await ctx.urls.growing.stop(key);
  if (!outcome.ok && outcome.missing.length === 0 && !outcome.odd?.length) {
    if (outcome.refusal.kind === 'later') return undefined;
    const reason = `Site ${ctx.record.name}: ${outcome.refusal.message}`;
    return { ...change, event: outcome.refusal.kind === 'gone' ? 'lost' : 'keep', set: holdAttributes(reason, 12) };
  }
  const { checkpoints } = ctx.spool;
  const { files: came = [] } = outcome;
  const leaves = leavesWork(job.attrs);
  // An evicted job may not have created all the files it names yet.
  const saved = leaves ? came.some(({ kind }) => kind === 'output') : outcome.ok && isCheckpoint(job.attrs);
  const umask = readNumber(job.attrs, 'GryphusUmask');
  try {
    if (files.sandbox) keepTransferLimit(job.attrs, 'output', bytesPlaced(files, came));
    let bytes = 0;
    if (saved) {
      await checkpoints.keep(job.id, job.attempt, came);
      crashPoint('checkpoint.kept');
      await sendCheckpoint(ctx, job);
      crashPoint('checkpoint.sent');
    }
    const made = new Set<string>();
    const placements: Placement[] = [];
    for (const file of came) {
      bytes += file.bytes;
      const to = saved ? undefined : placeFor(files, file);
      if (to === undefined) continue;
      const { kind, path, node } = file;
      const from = kind === 'output' ? path : await checkpoints.joined(job.id, job.attempt, kind, path, node);
      if (isUrl(to)) {
        const proxy = readString(job.attrs, 'x509userproxy');
        await ctx.urls.outputs.store(key, from, to, proxy);
        const of = kind === 'output' ? { kind, name: file.name } : { kind };
        if (kind !== 'output' || files.patterns.length > 0) await ctx.urls.growing.whole(job.id, of, to, proxy);
        continue;
      }
      const nested = kind === 'output' && file.name.includes('/');
      const below = to.startsWith(`${files.outputDirectory}/`) ? files.outputDirectory : files.iwd;
      if (nested && !made.has(dirname(to))) {
        await makeParents(below, to, umask);
        made.add(dirname(to));
      }
      // Streams may grow again if they are fetched again; other files come under their names when they are complete.
      const mayLink = kind === 'output';
      // Of files of a parallel job's nodes with the same name, the last one counts.
      if (node !== undefined) drop(placements, to);
      const mode = { executable: file.executable, mode: file.mode, umask };
      placements.push({ from, to, ...mode, mayLink, ...(nested ? { below } : {}) });
    }
    await placeAll(placements);
    const times = hasTravelled(ctx, job, files) ? transferTimes('Out', began, ctx.now()) : {};
    const lost = outcome.ok && outcome.lost ? statusAttributes({ how: outcome.lost }) : {};
    const found = leaves ? { GryphusSaved: saved ? 'true' : null } : missing(ctx, job, outcome);
    const set = { BytesRecvd: `${bytes}.0`, GryphusUrlWait: null, ...times, ...lost, ...found };
    return { ...change, event: 'fetched', set };
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) return kept(ctx, job, thrown);
    if (thrown.code === 'output-too-large') await ctx.spool.remove(key);
    if (ctx.urls.outputs.mayComeLater(key, thrown)) {
      const said = quoted(thrown.message);
      return job.attrs.get('GryphusUrlWait') === said ? undefined : { ...change, set: { GryphusUrlWait: said } };
    }
    return { ...change, event: 'keep', set: { ...holdByError(thrown), GryphusUrlWait: null } };
  }
}

/** What its output limit counts: files for URLs are exempt, as in HTCondor. */
function bytesPlaced(files: JobFiles, came: readonly FetchedFile[]): number {
  const here = came.filter((file) => !isUrl(placeFor(files, file) ?? ''));
  return here.reduce((sum, { bytes }) => sum + bytes, 0);
}

/**
 * Whether the job's files were transferred. A pool job without files to transfer runs in place if its worker shares our
 * file system.
 */
export function hasTravelled({ record }: SiteContext, { attrs }: JobRecord, { sandbox }: JobFiles): boolean {
  return sandbox && (record.batch !== POOL_SITE.batch || jobFiles(attrs, true).sandbox);
}

/** Removes the checkpoints of jobs that were removed while they were idle. */
async function dropOldCheckpoints(ctx: SiteContext): Promise<void> {
  const { queue, spool } = ctx;
  const saved = await spool.checkpoints.jobs();
  const there = new Set((await queue.get(saved)).map(({ id }) => formatJobId(id)));
  for (const id of saved) if (!there.has(formatJobId(id))) await dropCheckpoints(ctx, id);
}

const ODD: Readonly<Record<Exclude<OddOutput['is'], 'unasked'>, string>> = {
  pipe: 'a named pipe',
  socket: 'a socket',
  device: 'a device',
  loop: 'a link to a directory that contains it, or to too many files',
};

/**
 * For a named output that the job did not create, or that is not a regular file: the decision holds the job (HTCondor's
 * hold code 12).
 */
function missing(ctx: SiteContext, job: JobRecord, outcome: FetchOutcome): AttrTexts {
  if (outcome.ok) return { GryphusMissingOutput: null };
  const odd = outcome.odd ?? [];
  const names = [...outcome.missing, ...odd.map(({ name }) => name)].map((name) => `'${oneLine(name)}'`).join(', ');
  return { ...holdAttributes(missingReason(ctx, job, names, odd[0]), 12, 2), GryphusMissingOutput: quoted(names) };
}

function missingReason({ record }: SiteContext, job: JobRecord, names: string, odd: OddOutput | undefined): string {
  const ended = `${basename(job.attrs.get('Cmd')?.replaceAll('"', '') ?? 'the job')} ended at ${record.name}`;
  if (!odd) return `${ended} without the output ${names} that transfer_output_files names.`;
  const name = `'${oneLine(odd.name)}'`;
  if (odd.is === 'unasked') return `${ended}, and the site offers ${name}, which was not requested: it was left there.`;
  return `${ended}, and its output ${name} is ${ODD[odd.is]}: it has no content to bring home.`;
}

function drop(placements: Placement[], to: string): void {
  const before = placements.findIndex((one) => one.to === to);
  if (before >= 0) placements.splice(before, 1);
}

/** Where a file goes; of a parallel job's node, with its number for `$(Node)`. */
function placeFor(files: JobFiles, { kind, name, node }: FetchedFile): string | undefined {
  const to = target(files, kind, name);
  return to === undefined || node === undefined ? to : withNode(to, node);
}

function target(files: JobFiles, kind: 'output' | 'stdout' | 'stderr', name: string): string | undefined {
  return kind === 'output' ? destination(files, name) : files[kind];
}

async function decideAll(ctx: SiteContext, jobs: readonly JobRecord[]): Promise<void> {
  crashPoint('gm.before-decide');
  await commitChanges(
    ctx,
    jobs.flatMap((job): Change[] => {
      const decision = decided(ctx, job);
      return decision ? [{ id: job.id, from: job.state, attempt: job.attempt, ...decision }] : [];
    }),
  );
  crashPoint('gm.saved-decide');
}

/** Applies the job's policy; `undefined` if that is to be retried after an unexpected error. */
export function decided(ctx: SiteContext, job: JobRecord): Pick<Change, 'event' | 'set' | 'info'> | undefined {
  try {
    return decide(job, Math.floor(ctx.now() / 1000));
  } catch (thrown) {
    const error = ctx.troubles.met(job, "evaluating the job's policy", thrown);
    return error && { event: 'stop', set: holdByError(error) };
  }
}

/** Lets the site delete the attempts of these jobs, whose results have been transferred. */
export async function letForget(ctx: SiteContext, jobs: readonly JobRecord[]): Promise<readonly ChangeResult[]> {
  if (jobs.length === 0) return [];
  const byKey = new Map<AttemptKey, JobRecord>(jobs.map((job) => [keyOf(ctx, job), job]));
  crashPoint('gm.before-forget');
  const outcomes = await ctx.site.forget([...byKey.keys()]);
  crashPoint('gm.after-forget');
  const changes: Change[] = [];
  for (const [key, outcome] of outcomes) {
    const job = byKey.get(key);
    if (!job || !outcome.ok) continue;
    try {
      // A job that is held or evicted has not come by `settle`.
      await ctx.urls.growing.stop(key);
      await ctx.spool.remove(key);
      if (job.state === 'completing') {
        await dropCheckpoints(ctx, job.id, job.attrs);
        await ctx.urls.growing.forget(job.id);
      }
    } catch (thrown) {
      ctx.troubles.met(job, 'cleaning up', thrown);
      continue;
    }
    ctx.urls.outputs.drop(key);
    const elsewhere = job.state === 'completing' ? {} : asWished(job.attrs);
    changes.push({ id: job.id, from: job.state, attempt: job.attempt, event: 'forgotten', ...elsewhere });
  }
  const results = await commitChanges(ctx, changes);
  crashPoint('gm.saved-forget');
  return results;
}
