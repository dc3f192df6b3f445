import { sharesHome } from '../config/sites.ts';
import { withAttrs } from '../job/attrs.ts';
import type { Change, JobRecord } from '../queue/api.ts';
import type { Report } from '../site/contract.ts';
import type { SiteContext } from './context.ts';
import { isCheckpoint, jobFiles, leavesWork } from './files.ts';
import { decided, hasTravelled } from './results-loop.ts';
import { transferTimes } from './transfer-times.ts';

/**
 * The remaining steps after the end of a job that has nothing to fetch: the same steps as the results loop takes, each
 * checked and logged separately, but recorded together with the end. Empty if there may be something to fetch.
 */
export function stepsAfter(ctx: SiteContext, job: JobRecord, report: Report, ended: Change): Change[] {
  if (report.is !== 'ended' || !leavesNothing(ctx, job, report)) return [];
  const at = withAttrs(job.attrs, ended.set ?? {});
  if (isCheckpoint(at) || leavesWork(at)) return [];
  const of = { id: job.id, attempt: job.attempt };
  const files = jobFiles(job.attrs, sharesHome(ctx.record));
  const times = hasTravelled(ctx, job, files) ? transferTimes('Out', ctx.now(), ctx.now()) : {};
  const fetched = { BytesRecvd: '0.0', ...times };
  const decision = decided(ctx, { ...job, state: 'fetched', attrs: withAttrs(at, fetched) });
  if (!decision) return [];
  return [
    { ...of, from: 'finished', event: 'fetched', set: fetched },
    { ...of, from: 'fetched', ...decision },
  ];
}

function leavesNothing({ record }: SiteContext, { attrs }: JobRecord, report: Report & { is: 'ended' }): boolean {
  const { sandbox, stdout, stderr, outputs } = jobFiles(attrs, sharesHome(record));
  if (stdout !== undefined || stderr !== undefined) return false;
  if (!sandbox) return true;
  const lost = report.how.kind === 'by-site' && report.how.cause === 'node-fail';
  return report.noFiles === true && !lost && (outputs === 'new' || outputs.length === 0);
}
