import type { WatchConfig, Watched } from './model.ts';

/**
 * How long before its end a credential's users are warned, the longest first. A warning before half of its life is over
 * is only noise (one day for a 12 hour proxy), so it is dropped; a life too short for any of them gets one warning in
 * its last quarter.
 */
export function alarmTimes({ start, end }: Watched, { alarms }: Pick<WatchConfig, 'alarms'>): readonly number[] {
  if (end === undefined) return [];
  const sorted = [...new Set(alarms)].filter((one) => one > 0).sort((a, b) => b - a);
  if (start === undefined || alarms.length === 0) return sorted;
  const life = end - start;
  const fitting = sorted.filter((one) => one <= life / 2);
  return fitting.length > 0 ? fitting : [Math.max(1, Math.floor(life / 4))];
}

/** The warnings that are due, the longest first. */
export function reached(times: readonly number[], end: number, now: number): readonly number[] {
  return times.filter((one) => end - now <= one);
}
