/** What our own jobs taught us of a site. Times in seconds, moments in Unix seconds. */
export interface Measures {
  /** From the site's promise to the start, and from the start to the end: means in which the last five or so weigh half. */
  readonly wait?: number;
  readonly run?: number;
  /** When it failed us, newest last. */
  readonly failures: readonly number[];
}

export type Sample =
  | { readonly is: 'wait' | 'run'; readonly seconds: number }
  /** `words`: a refusal, which may be of what the job itself asked for. */
  | { readonly is: 'failure'; readonly at: number; readonly message?: string };

/** How much one more sample weighs. */
const WEIGHT = 0.13;
const MOST_FAILURES = 50;
/** Failures are forgotten after an hour. */
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

/** From when on fewer than `most` failures are recent, Unix seconds; `undefined` where they are fewer now. */
export function fewerFrom({ failures }: Measures, most: number, now: number): number | undefined {
  const recent = failures.filter((at) => now - at < RECENT_S && at <= now);
  const at = recent.sort((a, b) => b - a)[most - 1];
  return at === undefined ? undefined : at + RECENT_S;
}

function mean(before: number | undefined, sample: number): number {
  const value = Math.max(0, sample);
  return before === undefined ? value : Math.round((before + (value - before) * WEIGHT) * 1000) / 1000;
}
