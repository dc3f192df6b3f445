/** A GridManager process as the Scheduler sees it. Times are Unix milliseconds. */
export interface Child {
  readonly identity: string;
  readonly pid: number;
  readonly startedAt: number;
}

/** How often an identity's GridManager ended badly in a row, and when last. */
export interface Trouble {
  readonly failures: number;
  readonly lastAt: number;
}

export type PlanStep =
  | { readonly do: 'start'; readonly identity: string }
  | { readonly do: 'wait'; readonly identity: string; readonly untilMs: number };

/** A GridManager that lived so long was well: its earlier troubles are forgotten. */
export const HEALTHY_MS = 60_000;
export const LONGEST_WAIT_MS = 60_000;

/**
 * Who needs a GridManager that has none: one process for each identity with live jobs. A GridManager ends itself with
 * its last job, so none is ever stopped here. One that keeps dying is started again after 1, 2, 4 … 60 seconds.
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
    // A clock that was set back must not make a manager wait for longer than the longest wait.
    if (untilMs <= now || untilMs - now > longestWaitMs) steps.push({ do: 'start', identity });
    else steps.push({ do: 'wait', identity, untilMs });
  }
  return steps;
}

export function restartDelay(failures: number, longestWaitMs = LONGEST_WAIT_MS): number {
  return failures <= 0 ? 0 : Math.min(longestWaitMs, 1000 * 2 ** Math.min(failures - 1, 16));
}

/** The trouble after a child ended: none after a clean end or a healthy life. */
export function troubleAfter(
  previous: Trouble | undefined,
  clean: boolean,
  livedMs: number,
  now: number,
): Trouble | undefined {
  if (clean) return undefined;
  return { failures: livedMs >= HEALTHY_MS ? 1 : (previous?.failures ?? 0) + 1, lastAt: now };
}
