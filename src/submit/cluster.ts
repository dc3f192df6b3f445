import type { AttrTexts } from '../job/attrs.ts';
import { texts } from './attributes.ts';
import type { Attributes } from './draft.ts';
import type { SubmitWarning } from './fault.ts';
import type { JobRun } from './job-run.ts';
import type { LateMaterialization } from './late.ts';
import type { MakerScope } from './maker.ts';
import { type Missing, MOST_LOOKED_AT } from './missing.ts';

/** One job, as the attributes that differ from the cluster's ad. */
export interface ProcAd {
  readonly proc: number;
  readonly attrs: AttrTexts;
}

export interface ProcsRequest {
  /** The cluster's number from the queue; by default the one given when parsing. */
  readonly cluster?: number;
  /** 0 by default. */
  readonly from?: number;
  /** By default, all the following jobs. */
  readonly count?: number;
}

/** The jobs of one queue statement, with the macros as they were at the statement. */
export interface ClusterPart {
  readonly run: JobRun;
  readonly scope: MakerScope;
}

/** The result of a submit description: one cluster. */
export interface Cluster {
  /** Attributes that all jobs share unless they override them: those of the first job, without ProcId. */
  readonly clusterAd: AttrTexts;
  /** The total number of jobs. */
  readonly total: number;
  /** Warnings about all jobs read so far (`procs`), and always about the first. */
  readonly warnings: readonly SubmitWarning[];
  /** Set if jobs enter the queue gradually; `digest` is then used to make the later ones. */
  readonly late: LateMaterialization | undefined;
  /** The line (from 1) that sets one of these names; 0 if it was set elsewhere; `undefined` if none is set. */
  lineOf(names: readonly string[]): number | undefined;
  /** The jobs, made one by one as they are read. Throws a GryphusError at a job that cannot be made. */
  procs(request?: ProcsRequest): Iterable<ProcAd>;
  /** All that `materialize` needs, as JSON: the description with its includes and items already read. */
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

/** Looks for everything else that is missing in the jobs from `from` on, and throws. */
export function refuseMissing(parts: readonly ClusterPart[], base: Attributes, missing: Missing, from = 0): never {
  let left = MOST_LOOKED_AT;
  for (const { run, scope } of parts) {
    const { firstProc } = run.setup;
    for (let n = Math.max(0, from - firstProc); n < run.count && left > 0; n++, left--) run.job(scope, base, n, 1);
  }
  throw missing.error();
}
