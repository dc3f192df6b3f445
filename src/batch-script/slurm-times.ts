import { BadValue } from './model.ts';

const UNITS: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
};
/** Hours of the words for a time of day. */
const WORDS: Readonly<Record<string, number>> = { midnight: 0, noon: 12, fika: 15, teatime: 16 };

/**
 * Unix seconds of a time of sbatch's `--begin` and `--deadline`, in the local time zone: `now+1hour`, `16:00`,
 * `2030-01-20T12:34`, `0120`, `tomorrow`. A time of day that has passed is tomorrow's. `now`: Unix seconds.
 */
export function slurmTime(text: string, now: number): number {
  const word = text.trim().toLowerCase();
  const [, count, unit = 'second'] = /^now(?:\s*\+\s*(\d{1,9})\s*([a-z]+?)?s?)?$/.exec(word) ?? [];
  if (count !== undefined && UNITS[unit] !== undefined) return now + Number(count) * UNITS[unit];
  if (word === 'now') return now;
  const today = new Date(now * 1000);
  const day = (days: number) => new Date(today.getFullYear(), today.getMonth(), today.getDate() + days);
  if (word === 'today') return now;
  if (word === 'tomorrow') return seconds(new Date(today.getTime() + 86_400_000));
  const [date, clock] = apart(word);
  const time = clock === undefined ? { hours: 0, minutes: 0, seconds: 0 } : clockOf(clock);
  const at = date === undefined ? day(0) : dateOf(date, today);
  if (time === undefined || at === undefined) throw new BadValue(`'${text}' is not a time`);
  at.setHours(time.hours, time.minutes, time.seconds);
  if (date === undefined && seconds(at) < now) at.setDate(at.getDate() + 1);
  return seconds(at);
}

function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

/** The date and the time of day, in either order. */
function apart(word: string): readonly [date: string | undefined, clock: string | undefined] {
  const [, day, time] = /^(\d{4}-\d{1,2}-\d{1,2})t(.+)$/.exec(word) ?? [];
  if (day !== undefined) return [day, time];
  const parts = word.replaceAll(/\s*([ap]m)$/g, '$1').split(/\s+/);
  const clock = parts.find((part) => part.includes(':') || WORDS[part] !== undefined || /^\d+[ap]m$/.test(part));
  return [parts.find((part) => part !== clock), clock];
}

function clockOf(word: string) {
  const named = WORDS[word];
  if (named !== undefined) return { hours: named, minutes: 0, seconds: 0 };
  const [, hour, minute = '0', second = '0', half] = /^(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?([ap]m)?$/.exec(word) ?? [];
  if (hour === undefined || Number(hour) > (half ? 12 : 23) || Number(minute) > 59 || Number(second) > 59)
    return undefined;
  const hours = half === undefined ? Number(hour) : (Number(hour) % 12) + (half === 'pm' ? 12 : 0);
  return { hours, minutes: Number(minute), seconds: Number(second) };
}

/** `2030-01-20`, `MMDD[YY]`, `MM/DD[/YY]`, `DD.MM[.YY]`; without a year, the next such day. */
function dateOf(word: string, today: Date): Date | undefined {
  const [, wholeYear, m1, d1] = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(word) ?? [];
  const [, m2, d2, y2] =
    /^(\d{2})(\d{2})(\d{2})?$/.exec(word) ?? /^(\d{1,2})\/(\d{1,2})(?:\/(\d{2}))?$/.exec(word) ?? [];
  const [, d3, m3, y3] = /^(\d{1,2})\.(\d{1,2})(?:\.(\d{2}))?$/.exec(word) ?? [];
  const [month, day] = [Number(m1 ?? m2 ?? m3), Number(d1 ?? d2 ?? d3)];
  const short = y2 ?? y3;
  const year = wholeYear === undefined ? (short === undefined ? undefined : 2000 + Number(short)) : Number(wholeYear);
  const of = (one: number) => new Date(one, month - 1, day);
  const found = of(year ?? today.getFullYear());
  if (Number.isNaN(found.getTime()) || found.getMonth() !== month - 1) return undefined;
  const past = found.getTime() < today.getTime() - 86_400_000;
  return year === undefined && past ? of(today.getFullYear() + 1) : found;
}
