/** How full a site is, and how it was of late: what an expected wait is made of. Cores and jobs; seconds. */
export interface Load {
  /** As the site says; `undefined` where it cannot. */
  readonly totalCpus: number | undefined;
  readonly freeCpus: number | undefined;
  /** Of our jobs: given to the site and still at home, in its queue, running. */
  readonly here: number;
  readonly queued: number;
  readonly running: number;
  /** How many of ours the site is to have at most. */
  readonly maxJobs: number;
  readonly meanWait: number | undefined;
  readonly meanRun: number | undefined;
  readonly failures: number;
  /** It failed so often of late that it is on probation: until when, Unix seconds. */
  readonly probationUntil: number | undefined;
  /** One job may go there, to see whether it is well again. */
  readonly outOfUse: boolean;
}

/** A job of whose run time nothing is known. */
const RUN_S = 600;
/** The site is kept in work for so long ahead. */
const AHEAD_S = 60;
/** A site that says nothing of its cores is taken to have so many free. */
const PRESUMED_FREE = 4;
/** Each failure of the last hour counts as so much more waiting. */
const FAILURE_S = 300;
/** A site that failed so often of late is tried with one job at a time. */
export const PROBATION = 3;

/** Seconds until one more job of so many cores would start there, as far as can be told. */
export function expectedWait(load: Load, cpus: number): number {
  const waiting = (load.here + load.queued) * cpus;
  const penalty = load.failures * FAILURE_S;
  const free = freeOf(load) - waiting;
  if (free >= cpus) return penalty;
  const turns = (cpus - free) / Math.max(cpus, usable(load));
  const byTurns = turns * (load.meanRun ?? RUN_S);
  return Math.round(Math.max(load.meanWait ?? 0, byTurns) + penalty);
}

/**
 * How many more jobs the site is given now: what would start at once, and work for the next minute. The others stay at
 * home, where they can still go anywhere.
 */
export function roomFor(load: Load, cpus: number): number {
  const waiting = load.here + load.queued;
  if (isOnProbation(load)) return Math.max(0, 1 - waiting - load.running);
  const ahead = Math.max(2, Math.ceil((usable(load) / cpus) * (AHEAD_S / Math.max(1, load.meanRun ?? RUN_S))));
  const wanted = Math.floor(freeOf(load) / cpus) + ahead;
  return Math.max(0, Math.min(wanted, load.maxJobs - load.running) - waiting);
}

/** How many more candidates of flooded jobs may lie in the site's queue: all that its limit lets in. */
export function floodRoomFor(load: Load): number {
  const there = load.here + load.queued + load.running;
  return Math.max(0, isOnProbation(load) ? 1 - there : load.maxJobs - there);
}

function isOnProbation({ probationUntil, outOfUse }: Load): boolean {
  return outOfUse || probationUntil !== undefined;
}

function freeOf({ freeCpus, running }: Load): number {
  return Math.max(0, freeCpus ?? Math.max(PRESUMED_FREE, running));
}

/** Cores that our jobs have or could have at once. */
function usable(load: Load): number {
  return load.running + freeOf(load);
}
