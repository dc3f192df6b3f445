import type { AttrTexts } from '../job/attrs.ts';
import { quoted, readNumber, readString } from '../job/values.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import type { Report } from '../site/contract.ts';
import type { SiteContext } from './context.ts';
import { reportMessage } from './report.ts';

/** States in which the job has been recorded as started. */
const RAN: ReadonlySet<JobRecord['state']> = new Set(['running', 'suspended', 'unknown-running']);

/**
 * If the site put a job that had started back into its queue, this change is recorded first: the job is evicted and
 * idle. This includes the case that no poll saw it waiting in the queue: then the site reports another run than the one
 * recorded.
 */
export function againOf(ctx: SiteContext, job: JobRecord, report: Report): Change | undefined {
  if (!RAN.has(job.state)) return undefined;
  if (report.is !== 'queued' && !isAnotherRun(job, report)) return undefined;
  const started = readNumber(job.attrs, 'JobCurrentStartDate');
  const wall = started === undefined ? 0 : Math.max(0, Math.floor(ctx.now() / 1000) - started);
  const host = job.attrs.get('RemoteHost');
  const reason = `Site ${ctx.record.name} ended its run and put it back into its queue.`;
  return {
    id: job.id,
    from: job.state,
    attempt: job.attempt,
    event: 'queued',
    set: {
      GridJobStatus: quoted(report.is === 'queued' ? reportMessage(report) : 'PENDING'),
      JobCurrentStartDate: null,
      JobCurrentStartExecutingDate: null,
      RemoteHost: null,
      ...(host === undefined ? {} : { LastRemoteHost: host }),
      RemoteWallClockTime: ((readNumber(job.attrs, 'RemoteWallClockTime') ?? 0) + wall).toFixed(1),
      LastRemoteWallClockTime: wall.toFixed(1),
      ...(job.state === 'unknown-running' ? { GridResourceUnavailableTime: null } : {}),
    },
    info: { by: 'eviction', reason },
  };
}

/** Records which of the site's runs of the attempt has been counted as started. */
export function runAttributes(job: JobRecord, report: Report): AttrTexts {
  return isAnotherRun(job, report) ? { GryphusRun: quoted(runOf(job, report)) } : {};
}

function isAnotherRun(job: JobRecord, report: Report): boolean {
  if ((report.is !== 'running' && report.is !== 'ended') || report.run === undefined) return false;
  return readString(job.attrs, 'GryphusRun') !== runOf(job, report);
}

function runOf(job: JobRecord, report: Report & { readonly run?: number | undefined }): string {
  return `${job.attempt}.${report.run ?? 0}`;
}
