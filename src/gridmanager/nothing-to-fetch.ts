import { sharesHome } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { withAttrs } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { readNumber } from '../job/values.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import type { Report } from '../site/contract.ts';
import { placeBytes } from '../staging/place-bytes.ts';
import { isUrl } from '../staging/url/file-url.ts';
import type { SiteContext } from './context.ts';
import {
  isCheckpoint,
  type JobFiles,
  jobFiles,
  keepsAtEviction,
  leavesWork,
  savesItself,
  wantsCheckpoint,
} from './files.ts';
import { decided, hasTravelled } from './results-loop.ts';
import { streamed } from './streaming/streamed.ts';
import { limitsOutput } from './transfer-limits.ts';
import { transferTimes } from './transfer-times.ts';

/** Where the streams go that came with a report, which is all that the job leaves; `undefined`: it has to be fetched. */
export function streamsToPlace(ctx: SiteContext, job: JobRecord, report: Report): readonly Stream[] | undefined {
  if (report.is !== 'ended' || !report.streams || report.how.kind === 'by-site' || !isAlone(job)) return undefined;
  const files = jobFiles(job.attrs, sharesHome(ctx.record));
  if (files.sandbox && limitsOutput(job.attrs)) return undefined;
  if (!leavesStreamsOnly(files, report)) return undefined;
  const streams = (['stdout', 'stderr'] as const).flatMap((name): Stream[] => {
    const to = files[name];
    if (to === undefined || (name === 'stderr' && to === files.stdout)) return [];
    return [{ name, to, bytes: Buffer.from(report.streams?.[name] ?? '', 'base64') }];
  });
  return streams.length === 0 || streams.some(({ to }) => isUrl(to)) ? undefined : streams;
}

interface Stream {
  readonly name: 'stdout' | 'stderr';
  readonly to: string;
  readonly bytes: Buffer;
}

/** Whether what it leaves has nothing to do with other attempts, nor with what has been carried on while it ran. */
function isAlone({ attrs }: JobRecord): boolean {
  return !savesItself(attrs) && !wantsCheckpoint(attrs) && !keepsAtEviction(attrs) && streamed(attrs).size === 0;
}

/**
 * Puts these streams where the user wants them; returns their size in bytes. `undefined` if that is not possible now: the
 * results loop tries again, and says what is wrong.
 */
export async function placeStreams(
  { spool }: SiteContext,
  key: AttemptKey,
  { attrs }: JobRecord,
  streams: readonly Stream[],
): Promise<number | undefined> {
  const umask = readNumber(attrs, 'GryphusUmask');
  try {
    await Promise.all(streams.map(({ name, to, bytes }) => placeBytes(bytes, spool.streamPath(key, name), to, umask)));
  } catch (thrown) {
    if (!(thrown instanceof GryphusError)) throw thrown;
    return undefined;
  }
  return streams.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

/**
 * The remaining steps after the end of a job that has nothing to fetch, or whose streams came with the report and are in
 * their places (`placed` bytes): the same steps as the results loop takes, each checked and logged separately, but
 * recorded together with the end. Empty if there may be something to fetch.
 */
export function stepsAfter(
  ctx: SiteContext,
  job: JobRecord,
  report: Report,
  ended: Change,
  placed: number | undefined,
): Change[] {
  if (report.is !== 'ended' || (placed === undefined && !leavesNothing(ctx, job, report))) return [];
  const at = withAttrs(job.attrs, ended.set ?? {});
  if (isCheckpoint(at) || leavesWork(at)) return [];
  const of = { id: job.id, attempt: job.attempt };
  const files = jobFiles(job.attrs, sharesHome(ctx.record));
  const times = hasTravelled(ctx, job, files) ? transferTimes('Out', ctx.now(), ctx.now()) : {};
  const fetched = { BytesRecvd: `${placed ?? 0}.0`, ...times };
  const decision = decided(ctx, { ...job, state: 'fetched', attrs: withAttrs(at, fetched) });
  if (!decision) return [];
  return [
    { ...of, from: 'finished', event: 'fetched', set: fetched },
    { ...of, from: 'fetched', ...decision },
  ];
}

function leavesNothing({ record }: SiteContext, { attrs }: JobRecord, report: Report & { is: 'ended' }): boolean {
  const files = jobFiles(attrs, sharesHome(record));
  return files.stdout === undefined && files.stderr === undefined && leavesStreamsOnly(files, report);
}

function leavesStreamsOnly({ sandbox, outputs, patterns }: JobFiles, report: Report & { is: 'ended' }): boolean {
  if (!sandbox) return true;
  const lost = report.how.kind === 'by-site' && report.how.cause === 'node-fail';
  return report.noFiles === true && !lost && patterns.length === 0 && (outputs === 'new' || outputs.length === 0);
}
