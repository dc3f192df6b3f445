import type { Borrowed, BorrowedJob } from './borrowed-journal.ts';

/** A partner takes a job that it is asked to take, and starts it, within so many milliseconds each, while it fetches no inputs. */
export const START_MS = 60_000;
/** Inputs are fetched at this rate at least, in bytes a millisecond. */
const LEAST_RATE = 4;

/** Whether a partner is too slow with a job: nothing was fetched for a while, or too little in all since it had to begin. */
export function isStuck({ servedAt = 0, served = 0 }: Borrowed, begun: number, now: number): boolean {
  return now - Math.max(begun, servedAt) > START_MS || now - begun > START_MS + served / LEAST_RATE;
}

/** What a pool may need beyond a job's lease: for shorter leases than a minute, it counts a minute. */
const MARGIN_SECONDS = 60;

/** After so many seconds without contact, a job has ended for sure, at the partner or in whatever pool it passed the job on to. */
export function surelyOver({ lease, to = [] }: Pick<BorrowedJob, 'lease' | 'to'>): number {
  return lease + MARGIN_SECONDS * (1 + to.length);
}

/** The longest that a job may be on the way through other pools, with its inputs, in milliseconds, while the partner says that it is. */
const ONWARD_MS = 3_600_000;

/** Whether a partner has had a job for longer than it takes to start it. Each further pool may need that time twice: to take it, and to start it. */
export function isLate(one: Borrowed, now: number): boolean {
  const { to = [] } = one.job;
  const { committedAt, servedAt = 0 } = one;
  const since = committedAt ?? now;
  if (to.length === 0) return isStuck(one, since, now);
  return now - Math.max(since, servedAt) > START_MS * (1 + 2 * to.length) || now - since > ONWARD_MS;
}
