import type { WatchConfig, Watched } from './model.ts';

/**
 * How long before its end a credential's users are told, the longest first. What is more than half of its life is no
 * warning but noise (a day's warning of a 12 hour proxy); a life too short for all of them is told at its last quarter.
 */
export function alarmTimes({ start, end }: Watched, { alarms }: Pick<WatchConfig, 'alarms'>): readonly number[] {
  if (end === undefined) return [];
  const sorted = [...new Set(alarms)].filter((one) => one > 0).sort((a, b) => b - a);
  if (start === undefined || alarms.length === 0) return sorted;
  const life = end - start;
  const fitting = sorted.filter((one) => one <= life / 2);
  return fitting.length > 0 ? fitting : [Math.max(1, Math.floor(life / 4))];
}

/** Those whose time has come, the longest first. */
export function reached(times: readonly number[], end: number, now: number): readonly number[] {
  return times.filter((one) => end - now <= one);
}
