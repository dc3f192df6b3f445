/** How busy a site is and has been: what expected waits are computed from. Cores and jobs; seconds. */
export interface SiteLoad {
  /** As the site reports it; `undefined` if it cannot. */
  readonly totalCpus: number | undefined;
  readonly freeCpus: number | undefined;
  /** Our jobs there: given to the site but still at home, in its queue, running. */
  readonly here: number;
  readonly queued: number;
  readonly running: number;
  /** The most jobs of ours that the site may have. */
  readonly maxJobs: number;
  readonly meanWait: number | undefined;
  readonly meanRun: number | undefined;
  readonly failures: number;
  /** Set while recent failures keep the site on probation: its end in Unix seconds. */
  readonly probationUntil: number | undefined;
  /** The site is out of use: one job may go there, to see whether it works again. */
  readonly outOfUse: boolean;
}

/** The assumed run time of a job if no other is known. */
const RUN_S = 600;
/** How far ahead a site is kept supplied with work. */
const AHEAD_S = 60;
/** How many free cores a site is assumed to have if it reports none. */
const PRESUMED_FREE = 4;
/** How much waiting each failure of the last hour adds to the expected wait. */
const FAILURE_S = 300;
/** How many recent failures put a site on probation, where it gets one job at a time. */
export const PROBATION = 3;

/** Estimates the seconds until one more job with this many cores would start there. */
export function expectedWait(load: SiteLoad, cpus: number): number {
  const waiting = (load.here + load.queued) * cpus;
  const penalty = load.failures * FAILURE_S;
  const free = freeOf(load) - waiting;
  if (free >= cpus) return penalty;
  const turns = (cpus - free) / Math.max(cpus, usable(load));
  const byTurns = turns * (load.meanRun ?? RUN_S);
  return Math.round(Math.max(load.meanWait ?? 0, byTurns) + penalty);
}

/**
 * How many more jobs the site is given now: those that would start at once, and work for the next minute. The others
 * stay at home, where they can still go anywhere.
 */
export function capacityFor(load: SiteLoad, cpus: number): number {
  const waiting = load.here + load.queued;
  if (isOnProbation(load)) return Math.max(0, 1 - waiting - load.running);
  const ahead = Math.max(2, Math.ceil((usable(load) / cpus) * (AHEAD_S / Math.max(1, load.meanRun ?? RUN_S))));
  const wanted = Math.floor(freeOf(load) / cpus) + ahead;
  return Math.max(0, Math.min(wanted, load.maxJobs - load.running) - waiting);
}

/** How many more candidates of flooded jobs the site's queue may hold: whatever its limit allows. */
export function floodCapacityFor(load: SiteLoad): number {
  const there = load.here + load.queued + load.running;
  return Math.max(0, isOnProbation(load) ? 1 - there : load.maxJobs - there);
}

function isOnProbation({ probationUntil, outOfUse }: SiteLoad): boolean {
  return outOfUse || probationUntil !== undefined;
}

function freeOf({ freeCpus, running }: SiteLoad): number {
  return Math.max(0, freeCpus ?? Math.max(PRESUMED_FREE, running));
}

/** Cores that our jobs have now or could have at once. */
function usable(load: SiteLoad): number {
  return load.running + freeOf(load);
}
