/** A GridManager process, as the Scheduler sees it. Times are Unix milliseconds. */
export interface Child {
  readonly identity: string;
  readonly pid: number;
  readonly startedAt: number;
}

/** How many times in a row an identity's GridManager failed, and when last. */
export interface Trouble {
  readonly failures: number;
  readonly lastAt: number;
}

export type PlanStep =
  | { readonly do: 'start'; readonly identity: string }
  | { readonly do: 'wait'; readonly identity: string; readonly untilMs: number };

/** A GridManager that lived this long was healthy: its earlier failures are forgotten. */
export const HEALTHY_MS = 60_000;
export const LONGEST_WAIT_MS = 60_000;

/**
 * Which identities need a GridManager started: one process for each identity with live jobs. A GridManager ends itself
 * after its last job, so none is stopped here. One that keeps dying is restarted after 1, 2, 4 … 60 seconds.
 */
export function plan(
  now: number,
  wanted: ReadonlySet<string>,
  running: ReadonlyMap<string, Child>,
  troubles: ReadonlyMap<string, Trouble>,
  longestWaitMs = LONGEST_WAIT_MS,
): PlanStep[] {
  const steps: PlanStep[] = [];
  for (const identity of wanted) {
    if (running.has(identity)) continue;
    const trouble = troubles.get(identity);
    const untilMs = trouble ? trouble.lastAt + restartDelay(trouble.failures, longestWaitMs) : now;
    // Bounded by the longest wait, in case the clock was set back.
    if (untilMs <= now || untilMs - now > longestWaitMs) steps.push({ do: 'start', identity });
    else steps.push({ do: 'wait', identity, untilMs });
  }
  return steps;
}

export function restartDelay(failures: number, longestWaitMs = LONGEST_WAIT_MS): number {
  return failures <= 0 ? 0 : Math.min(longestWaitMs, 1000 * 2 ** Math.min(failures - 1, 16));
}

/** The failures after a child ended: none after a clean exit; after a healthy life, this is the first. */
export function troubleAfter(
  previous: Trouble | undefined,
  clean: boolean,
  livedMs: number,
  now: number,
): Trouble | undefined {
  if (clean) return undefined;
  return { failures: livedMs >= HEALTHY_MS ? 1 : (previous?.failures ?? 0) + 1, lastAt: now };
}
