import { GryphusError } from '../errors.ts';

const UNITS = { d: 86_400, h: 3600, m: 60, s: 1 };
const TIME = /^(?:([\d.]+)d)?(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s?)?$/;
/** The most that a timer of Node takes. */
const MOST = 24 * UNITS.d;

/** GNU parallel's times: seconds, or with units, as in 1h30m; 0 is none. */
export function secondsOf(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (given.endsWith('%'))
    throw new GryphusError('usage', `${option} ${given} is not supported: a share of the time that other tasks took.`, {
      suggestions: [`Say how long, as in ${option} 90, 5m or 1.5h.`],
    });
  const [, ...parts] = TIME.exec(given) ?? [];
  const seconds = Object.values(UNITS).reduce((so, unit, i) => so + unit * Number(parts[i] ?? 0), 0);
  if (given !== '' && parts.length > 0 && seconds >= 0 && seconds <= MOST) return seconds === 0 ? undefined : seconds;
  throw new GryphusError('usage', `${option}: ${JSON.stringify(given)} is not a time from 0 to 24 days.`, {
    suggestions: [`Say how long, as in ${option} 90, 5m or 1.5h.`],
  });
}
