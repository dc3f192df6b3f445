import type { SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { type AttemptKey, formatAttemptKey, type JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { Change, ChangeResult, JobRecord, Lease, Queue } from '../queue/api.ts';
import type { Site } from '../site/contract.ts';
import type { BlobIndex } from '../staging/blobs.ts';
import type { AttemptSpool } from '../staging/streams.ts';
import type { CredentialGate } from './credential-gate.ts';
import type { Lane } from './lanes.ts';
import type { SiteProxies } from './proxies.ts';
import type { UrlAccess } from './url-access.ts';
import type { UrlInputs } from './url-inputs.ts';
import type { UrlOutputs } from './url-outputs.ts';

/** What a lane's round works with: one site of one manager. */
export interface SiteContext {
  readonly agent: string;
  readonly manager: string;
  readonly lease: Lease;
  readonly queue: Pick<Queue, 'nextJobs' | 'get' | 'query' | 'transitionMany' | 'totals' | 'kv'>;
  readonly record: SiteRecord;
  readonly site: Site;
  readonly blobs: BlobIndex;
  readonly spool: AttemptSpool;
  readonly gate: CredentialGate;
  readonly proxies: SiteProxies;
  readonly urls: { readonly access: UrlAccess; readonly inputs: UrlInputs; readonly outputs: UrlOutputs };
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly wake: (lane: Lane) => void;
  /** Somebody follows the output of a job now. */
  readonly isFollowed: () => Promise<boolean>;
}

/** When a lane wants its next round: at once, after so many milliseconds, or when it is woken. */
export type Again = number | undefined;

/** Jobs that one exchange with a site carries at most. */
export const BATCH = 200;

export function jobsIn(ctx: SiteContext, state: State, limit = BATCH): Promise<readonly JobRecord[]> {
  return ctx.queue.nextJobs({ manager: ctx.manager, site: ctx.record.name, state, limit });
}

export function keyOf(
  ctx: Pick<SiteContext, 'agent'>,
  job: { readonly id: JobId; readonly attempt: number },
): AttemptKey {
  return formatAttemptKey({ agent: ctx.agent, ...job.id, attempt: job.attempt });
}

/**
 * Records changes under this manager's lease. A refusal because the user was faster is no fault: the job is then found
 * in its new state. A stale epoch ends this process (invariant 4).
 */
export async function commitChanges(ctx: SiteContext, changes: readonly Change[]): Promise<readonly ChangeResult[]> {
  if (changes.length === 0) return [];
  const results = await ctx.queue.transitionMany(changes, ctx.lease);
  if (results.some((result) => !result.ok && result.why === 'stale-epoch')) {
    throw new GryphusError('stale-epoch', `Another GridManager serves ${ctx.manager} now; this one ends.`);
  }
  return results;
}
