import type { Attempt } from './attempts.ts';
import type { Collector } from './collector.ts';

/** A worker ends its runs when their leases expire; the central manager waits this much longer, in milliseconds. */
const MARGIN_MS = 60_000;

export const LEASE_OVER = "its worker did not report for the job's whole lease";

/** Attempts whose workers have been away for longer than their leases: whatever ran there has ended by now. */
export function overdue(
  attempts: Iterable<Attempt>,
  collector: Pick<Collector, 'get' | 'startedAt'>,
  now: number,
): Attempt[] {
  return [...attempts].filter(
    (attempt) => attempt.phase !== 'ended' && attempt.phase !== 'withdrawn' && isOverdue(attempt, collector, now),
  );
}

/** Whether the attempt's worker has been away for longer than its lease. */
export function isOverdue(
  { worker: instance, request }: Attempt,
  collector: Pick<Collector, 'get' | 'startedAt'>,
  now: number,
): boolean {
  if (instance === undefined) return false;
  const worker = collector.get(instance);
  if (worker?.connected) return false;
  return now - (worker?.movedAt ?? collector.startedAt) > request.lease * 1000 + MARGIN_MS;
}
