import type { JobView, Totals } from '../../index.ts';
import { NO_JOBS, type Sums } from '../../job/totals.ts';
import { UNIVERSE } from '../../job/universe.ts';
import { numberOf } from './ad.ts';
import { columns, cut, type Width } from './width.ts';

const COUNTED: Readonly<Record<number, keyof Totals>> = {
  1: 'idle',
  2: 'running',
  3: 'removed',
  4: 'completed',
  5: 'held',
  6: 'running',
  7: 'suspended',
};

/** Counts by JobStatus; jobs of the scheduler universe (DAG managers) are left out, as in HTCondor. */
export function countJobs(jobs: Iterable<JobView>, sums: Sums = { ...NO_JOBS }): Totals {
  for (const { ad } of jobs) {
    if (numberOf(ad, 'JobUniverse') === UNIVERSE.scheduler) continue;
    sums.jobs++;
    const name = COUNTED[numberOf(ad, 'JobStatus') ?? 1];
    if (name) sums[name]++;
  }
  return sums;
}

export function totalsText(t: Totals): string {
  return `${t.jobs} jobs; ${t.completed} completed, ${t.removed} removed, ${t.idle} idle, ${t.running} running, ${t.held} held, ${t.suspended} suspended`;
}

/** The same for a narrow terminal: zero counts are left out. */
function shortTotals(t: Totals): string {
  const counts = NAMED.flatMap((name) => (t[name] > 0 ? [`${t[name]} ${name}`] : []));
  return [`${t.jobs} jobs`, ...(counts.length > 0 ? [counts.join(', ')] : [])].join('; ');
}

const NAMED = ['completed', 'removed', 'idle', 'running', 'held', 'suspended'] as const;

/** The three lines under a table; all but the last end in a blank, as HTCondor's do. */
export function totalsLines(
  query: Totals,
  user: { readonly name: string; readonly totals: Totals } | undefined,
  all: Totals,
  width?: Width,
): string[] {
  const waiting = all.unmaterialized > 0 ? [`${all.unmaterialized} more jobs will be materialized as others end.`] : [];
  const lines = (text: (t: Totals) => string) => [
    `Total for query: ${text(query)} `,
    ...(user ? [`Total for ${user.name}: ${text(user.totals)} `] : []),
    `Total for all users: ${text(all)}`,
  ];
  const whole = lines(totalsText);
  const fits = width === undefined || whole.every((line) => columns(line.trimEnd()) <= width);
  return [...(fits ? whole : lines(shortTotals).map((line) => cut(line, width))), ...waiting, ''];
}
