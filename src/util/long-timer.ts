/** The longest delay that setTimeout() knows, in milliseconds: 24.8 days. It calls back at once after a longer one. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * As setTimeout(), for any number of milliseconds. `keep` is given each timer in turn: clearing the last one ends the
 * wait.
 */
export function startTimer(ms: number, call: () => void, keep: (timer: NodeJS.Timeout) => void): void {
  const part = Math.min(ms, LONGEST_TIMER_MS);
  keep(setTimeout(() => (ms > part ? startTimer(ms - part, call, keep) : call()), part));
}
