/** How fast an Up-Down index moves. */
export interface UpDownRates {
  /** Seconds; `up` and `down` are for each of them. */
  readonly interval: number;
  /** Added for each core held. */
  readonly up: number;
  /** Subtracted while jobs wait that are denied capacity. */
  readonly down: number;
  /** Seconds in which the index of an owner who neither holds nor wants anything falls, or rises, to half. */
  readonly halfLife: number;
}

/** The bounds of an index: a core held for a day. Without bounds, an owner would pay for last month's use. */
export const FARTHEST = 720;

/**
 * The index of the Up-Down algorithm (Mutka and Livny, 1987) after `seconds`: up with capacity held, down while more is
 * wanted and denied, back towards 0 otherwise. `weight` multiplies what is held.
 */
export function nextIndex(
  index: number,
  { held, wants, weight }: { readonly held: number; readonly wants: boolean; readonly weight: number },
  seconds: number,
  { interval, up, down, halfLife }: UpDownRates,
): number {
  if (seconds <= 0) return index;
  if (held <= 0 && !wants) return index * 0.5 ** (seconds / halfLife);
  const change = (up * held * weight - (wants ? down : 0)) * (seconds / interval);
  return Math.min(FARTHEST, Math.max(-FARTHEST, index + change));
}
