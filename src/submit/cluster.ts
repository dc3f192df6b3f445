import type { AttrTexts } from '../job/attrs.ts';
import { texts } from './attributes.ts';
import type { Attributes } from './draft.ts';
import type { Warning } from './fault.ts';
import type { JobRun } from './job-run.ts';
import type { LateMaterialization } from './late.ts';
import type { MakerScope } from './maker.ts';
import { type Missing, MOST_LOOKED_AT } from './missing.ts';

/** One job: what differs from the cluster's ad. */
export interface ProcAd {
  readonly proc: number;
  readonly attrs: AttrTexts;
}

export interface ProcsRequest {
  /** The number that the queue gave the cluster; default the one that was given at the parsing. */
  readonly cluster?: number;
  /** Default 0. */
  readonly from?: number;
  /** Default: all that follow. */
  readonly count?: number;
}

/** A statement's jobs, and the macros as they were at the statement. */
export interface ClusterPart {
  readonly run: JobRun;
  readonly scope: MakerScope;
}

/** What a submit description makes: one cluster. */
export interface Cluster {
  /** Attributes that all jobs share, where a job does not say otherwise: those of the first job, without ProcId. */
  readonly clusterAd: AttrTexts;
  /** How many jobs there are in all. */
  readonly total: number;
  /** Of all jobs that were read so far (`procs`); of the first in any case. */
  readonly warnings: readonly Warning[];
  /** Set when the jobs are to come into the queue bit by bit; `digest` then makes the later ones. */
  readonly late: LateMaterialization | undefined;
  /** The line (from 1) on which one of these names has a value; 0: it has one from elsewhere; `undefined`: none has. */
  lineOf(names: readonly string[]): number | undefined;
  /** The jobs, made one by one as they are read. Throws GryphusError at a job that cannot be. */
  procs(request?: ProcsRequest): Iterable<ProcAd>;
  /** All that `materialize` needs, as JSON text: the description with its includes and items read. */
  digest(): string;
}

export function* procsOf(
  parts: readonly ClusterPart[],
  base: Attributes,
  request: Required<ProcsRequest>,
): Generator<ProcAd> {
  const end = request.from + request.count;
  for (const { run, scope } of parts) {
    const { firstProc } = run.setup;
    for (let proc = Math.max(request.from, firstProc); proc < Math.min(end, firstProc + run.count); proc++) {
      const draft = run.job(scope, base, proc - firstProc, request.cluster);
      if (scope.missing.any) refuseMissing(parts, base, scope.missing, proc);
      yield { proc, attrs: texts(draft.own) };
    }
  }
}

/** Looks what else is missing in the jobs from `from` on, and throws. */
export function refuseMissing(parts: readonly ClusterPart[], base: Attributes, missing: Missing, from = 0): never {
  let left = MOST_LOOKED_AT;
  for (const { run, scope } of parts) {
    const { firstProc } = run.setup;
    for (let n = Math.max(0, from - firstProc); n < run.count && left > 0; n++, left--) run.job(scope, base, n, 1);
  }
  throw missing.error();
}
