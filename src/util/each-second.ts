interface Called {
  readonly call: () => void;
  /** Seconds. */
  readonly every: number;
  readonly keepsAlive: boolean;
  readonly withNews: boolean;
}

const all = new Set<Called>();
let timer: NodeJS.Timeout | undefined;
/** Whole seconds, by the monotonic clock of this process: when what was due, and what looks for news, was last called. */
let called = 0;
let looked = 0;

/**
 * Calls again and again, in whole seconds (`every`; default 1), together with all others of this process that are called so: it
 * wakes once for all, and only in seconds in which one of them is due. `keepsAlive`: the process does not end while it is to be called.
 * `withNews`: `lookNow` calls it, too. Returns what ends it. No call may throw.
 */
export function eachSecond(
  call: () => void,
  { every = 1, keepsAlive = false, withNews = false }: Partial<Omit<Called, 'call'>> = {},
): () => void {
  const one: Called = { call, every, keepsAlive, withNews };
  all.add(one);
  arm();
  return () => {
    all.delete(one);
    arm();
  };
}

/** Something has happened, and what is looked for may have come with it. At most once a second. */
export function lookNow(): void {
  const second = secondOf(performance.now());
  if (second === looked) return;
  looked = second;
  for (const one of all) if (one.withNews) one.call();
}

function tick(): void {
  const before = called;
  called = Math.max(before, secondOf(performance.now()));
  for (const one of all) if (Math.floor(called / one.every) > Math.floor(before / one.every)) one.call();
  arm();
}

function arm(): void {
  clearTimeout(timer);
  timer = undefined;
  if (all.size === 0) return;
  const now = performance.now();
  let next = Number.POSITIVE_INFINITY;
  for (const { every } of all) next = Math.min(next, (Math.floor(secondOf(now) / every) + 1) * every);
  timer = setTimeout(tick, next * 1000 - now);
  if (![...all].some(({ keepsAlive }) => keepsAlive)) timer.unref();
}

/** A timer may end a moment before its time by this clock. */
function secondOf(ms: number): number {
  return Math.floor((ms + 2) / 1000);
}
