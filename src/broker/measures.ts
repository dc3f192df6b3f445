import type { Measures } from '../queue/tables.ts';

/** What a job of ours has shown about a site. Durations in seconds, times in Unix seconds. */
export type Sample =
  | { readonly is: 'wait' | 'run'; readonly seconds: number }
  /** `message`: a refusal, perhaps of something that the job itself requested. */
  | { readonly is: 'failure'; readonly at: number; readonly message?: string };

/** The weight of one more sample. */
const WEIGHT = 0.13;
const MOST_FAILURES = 50;
/** How long failures count. */
export const RECENT_S = 3600;

export const NOTHING_MEASURED: Measures = { failures: [] };

export function observe(known: Measures, sample: Sample): Measures {
  switch (sample.is) {
    case 'failure':
      return { ...known, failures: [...known.failures, sample.at].slice(-MOST_FAILURES) };
    case 'wait':
      return { ...known, wait: mean(known.wait, sample.seconds) };
    case 'run':
      return { ...known, run: mean(known.run, sample.seconds) };
  }
}

export function recentFailures(measures: Measures, now: number): number {
  return measures.failures.filter((at) => now - at < RECENT_S && at <= now).length;
}

/** When fewer than `most` failures will be recent, in Unix seconds; `undefined` if that is so now. */
export function fewerFrom({ failures }: Measures, most: number, now: number): number | undefined {
  const recent = failures.filter((at) => now - at < RECENT_S && at <= now);
  const at = recent.sort((a, b) => b - a)[most - 1];
  return at === undefined ? undefined : at + RECENT_S;
}

function mean(before: number | undefined, sample: number): number {
  const value = Math.max(0, sample);
  return before === undefined ? value : Math.round((before + (value - before) * WEIGHT) * 1000) / 1000;
}
