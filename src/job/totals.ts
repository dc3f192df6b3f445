/** Job counts by the state shown to the user. */
export interface Totals {
  readonly jobs: number;
  readonly completed: number;
  readonly removed: number;
  readonly idle: number;
  readonly running: number;
  readonly held: number;
  readonly suspended: number;
  /** Procs yet to be materialized. */
  readonly unmaterialized: number;
}

export const NO_JOBS: Totals = {
  jobs: 0,
  completed: 0,
  removed: 0,
  idle: 0,
  running: 0,
  held: 0,
  suspended: 0,
  unmaterialized: 0,
};

/** Totals that are still being counted. */
export type Sums = { -readonly [K in keyof Totals]: Totals[K] };

/** The totals of these clusters, without DAG managers. */
export function sumOf(clusters: Iterable<{ readonly manager: boolean; readonly totals: Totals }>): Totals {
  const sums: Sums = { ...NO_JOBS };
  for (const { manager, totals } of clusters) {
    if (manager) continue;
    for (const name of Object.keys(sums) as (keyof Totals)[]) sums[name] += totals[name];
  }
  return sums;
}
