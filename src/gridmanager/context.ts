import type { SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { type AttemptKey, formatAttemptKey, type JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { Candidate, CandidateStep, Change, ChangeResult, JobRecord, Lease, Queue } from '../queue/api.ts';
import type { FetchRequest, Site } from '../site/contract.ts';
import type { BlobIndex } from '../staging/blobs.ts';
import type { AttemptSpool } from '../staging/streams.ts';
import type { CredentialGate } from './credential-gate.ts';
import type { Troubles } from '../job/faults.ts';
import type { WorkLoop } from '../job/work-loops.ts';
import type { SiteBackoff } from './backoff.ts';
import type { ProxyPrograms } from './io-proxy-programs.ts';
import type { SiteProxies } from './proxies.ts';
import type { GrowingOutputs } from './streaming/growing.ts';
import type { UrlAccess } from './url-access.ts';
import type { UrlInputs } from './url-inputs.ts';
import type { UrlOutputs } from './url-outputs.ts';

/** Everything a round of a work loop needs: one site of one manager. */
export interface SiteContext {
  readonly agent: string;
  readonly manager: string;
  readonly lease: Lease;
  readonly queue: Pick<
    Queue,
    | 'nextJobs'
    | 'get'
    | 'query'
    | 'transitionMany'
    | 'totals'
    | 'kv'
    | 'candidates'
    | 'mark'
    | 'divergence'
    | 'skipClusters'
  >;
  readonly record: SiteRecord;
  readonly site: Site;
  readonly blobs: BlobIndex;
  readonly spool: AttemptSpool;
  readonly gate: CredentialGate;
  readonly ioProxy: ProxyPrograms;
  readonly proxies: SiteProxies;
  readonly backoff: SiteBackoff;
  readonly urls: {
    readonly access: UrlAccess;
    readonly inputs: UrlInputs;
    readonly outputs: UrlOutputs;
    readonly growing: GrowingOutputs;
  };
  /** Attempts being prepared at the site now. Their cancellation waits, because a `prepare` could arrive after it. */
  readonly underway: Set<AttemptKey>;
  /** Attempts whose large results are being transferred, and the request made for each. */
  readonly coming: Map<AttemptKey, FetchRequest>;
  /** Jobs whose own processing failed. */
  readonly troubles: Troubles;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly wake: (workLoop: WorkLoop) => void;
  /** Jobs or candidates were moved from one state to another. */
  readonly moved: () => void;
  /** With many sites, how often each that has nothing to report is polled at most, milliseconds. */
  readonly quietMs: () => number;
  /** Whether a user is following a job's output now. */
  readonly isFollowed: () => Promise<boolean>;
}

/** When a work loop wants its next round: after this many milliseconds (0: at once), or only when it is woken. */
export type Again = number | undefined;

/** Maximum number of jobs in one round of a work loop. */
export const BATCH = 1000;

/** What is sent to a site: a job in its attempt, or one of its candidates (`job` then has the candidate's attempt). */
export interface Sent {
  readonly key: AttemptKey;
  readonly job: JobRecord;
  readonly candidate?: Candidate;
}

export async function jobsIn(ctx: SiteContext, state: State, limit = BATCH): Promise<readonly JobRecord[]> {
  const jobs = await ctx.queue.nextJobs({ manager: ctx.manager, site: ctx.record.name, state, limit });
  return jobs.filter((job) => !ctx.troubles.isResting(job));
}

export function keyOf(
  ctx: Pick<SiteContext, 'agent'>,
  job: { readonly id: JobId; readonly attempt: number },
): AttemptKey {
  return formatAttemptKey({ agent: ctx.agent, ...job.id, attempt: job.attempt });
}

/**
 * Records changes under this manager's lease, only for jobs that are still at this site: a job that was moved since it
 * was read must not start here as well. A refusal because the user acted first is not an error; the job is found in its
 * new state later. Throws 'stale-epoch' if a newer GridManager serves this manager; this process then ends
 * (docs/ARCHITECTURE.md, invariant 4).
 */
export async function commitChanges(ctx: SiteContext, changes: readonly Change[]): Promise<readonly ChangeResult[]> {
  if (changes.length === 0) return [];
  const at = { manager: ctx.manager, site: ctx.record.name };
  const here = changes.map((change) => (change.candidate === undefined ? { ...change, at } : change));
  const results = await ctx.queue.transitionMany(here, ctx.lease).finally(ctx.moved);
  endIfStale(ctx, results);
  return results;
}

/** Like `commitChanges`, for steps of candidates. */
export async function commitCandidateSteps(ctx: SiteContext, steps: readonly CandidateStep[]): Promise<void> {
  if (steps.length > 0) endIfStale(ctx, await ctx.queue.candidates.step(steps, ctx.lease).finally(ctx.moved));
}

function endIfStale(
  ctx: SiteContext,
  results: readonly { readonly ok: boolean; readonly why?: string | undefined }[],
): void {
  if (results.every((result) => result.ok || result.why !== 'stale-epoch')) return;
  throw new GryphusError('stale-epoch', `Another GridManager serves ${ctx.manager} now; this one ends.`);
}
