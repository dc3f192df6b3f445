import { instantOf } from '../calendar.ts';
import { localOffset, localZone, pad } from '../time-text.ts';

/** A broken-down time like C's struct tm, but with the month from 1 and the full year. */
export interface Clock {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
}

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

function isLeap(year: number): boolean {
  return year % 4 === 0 && ![100, 200, 300].includes(year % 400);
}

/** Days since 0000-12-31 in the Gregorian calendar, with integer divisions truncated as in C. */
function fixedDay({ year, month, day }: Clock): number {
  const before = year - 1;
  const adjustment = month <= 2 ? 0 : isLeap(year) ? -1 : -2;
  const leaps = Math.trunc(before / 4) - Math.trunc(before / 100) + Math.trunc(before / 400);
  return 365 * before + leaps + Math.trunc((367 * month - 362) / 12) + adjustment + day;
}

/** Days since the Monday of a year's first ISO week, the one that contains January 4. */
function isoDays(yearDay: number, weekDay: number): number {
  return yearDay - ((yearDay - weekDay + 4 + 378) % 7) + 3;
}

function isoWeek(year: number, yearDay: number, weekDay: number): { week: number; year: number } {
  const here = isoDays(yearDay, weekDay);
  if (here < 0) {
    const length = isLeap(year - 1) ? 366 : 365;
    return { week: Math.trunc(isoDays(yearDay + length, weekDay) / 7) + 1, year: year - 1 };
  }
  const next = isoDays(yearDay - (isLeap(year) ? 366 : 365), weekDay);
  return next >= 0 ? { week: Math.trunc(next / 7) + 1, year: year + 1 } : { week: Math.trunc(here / 7) + 1, year };
}

/** mktime(3): the clock is in the local zone. */
function epoch(clock: Clock): number {
  const local = instantOf(clock);
  return local - localOffset(local - localOffset(local));
}

/** strftime(3) in the C locale with glibc's extensions (flags `_ - 0 ^ #`, a width). */
export function strftime(format: string, clock: Clock): string {
  const fixed = fixedDay(clock);
  const weekDay = fixed % 7;
  const yearDay = fixed - fixedDay({ ...clock, month: 1, day: 1 });
  return expand(format, clock, weekDay, yearDay);
}

/** The letters that glibc rejects after E and after O. */
const NOT_AFTER: Readonly<Record<string, string>> = { E: 'abdeghjklmwABDFGHIMSUVW', O: 'acxADFXY' };

function expand(format: string, clock: Clock, weekDay: number, yearDay: number): string {
  return format.replace(
    /%([_\-0^#]*)([0-9]*)([EO]?)([a-zA-Z%])/g,
    (whole, flags: string, width: string, modifier: string, letter: string) => {
      const field = NOT_AFTER[modifier]?.includes(letter) ? undefined : fieldOf(letter, clock, weekDay, yearDay);
      if (field === undefined) return whole;
      return cased(letter, laidOut(field, flags, width === '' ? undefined : Number(width)), flags);
    },
  );
}

type Field = string | { readonly number: number; readonly width: number; readonly filler: string };

function laidOut(field: Field, flags: string, width: number | undefined): string {
  const text = typeof field === 'string';
  let filler = text ? ' ' : field.filler;
  for (const flag of flags) {
    if (flag === '_') filler = ' ';
    if (flag === '0') filler = '0';
    if (flag === '-') filler = '';
  }
  const least = width ?? (text || filler === '' ? 0 : field.width);
  return text ? field.padStart(least, filler || ' ') : pad(field.number, least, filler || ' ');
}

/** `^`: upper case. `#`: the opposite case, for names only. */
function cased(letter: string, text: string, flags: string): string {
  if (flags.includes('#') && 'pZ'.includes(letter)) return text.toLowerCase();
  const upper = flags.includes('^') ? letter !== 'P' : flags.includes('#') && 'aAbBh'.includes(letter);
  return upper ? text.toUpperCase() : text;
}

function number(value: number, width = 2, filler = '0'): Field {
  return { number: value, width, filler };
}

function fieldOf(letter: string, clock: Clock, weekDay: number, yearDay: number): Field | undefined {
  const { year, month, day, hours, minutes, seconds } = clock;
  const again = (format: string): string => expand(format, clock, weekDay, yearDay);
  const iso = isoWeek(year, yearDay, weekDay);
  const hour12 = hours > 12 ? hours - 12 : hours === 0 ? 12 : hours;
  const fields: Readonly<Record<string, () => Field>> = {
    a: () => (DAYS[weekDay] ?? '?').slice(0, 3),
    A: () => DAYS[weekDay] ?? '?',
    b: () => (MONTHS[month - 1] ?? '?').slice(0, 3),
    h: () => (MONTHS[month - 1] ?? '?').slice(0, 3),
    B: () => MONTHS[month - 1] ?? '?',
    c: () => again('%a %b %e %H:%M:%S %Y'),
    C: () => number(Math.floor(year / 100), 1),
    d: () => number(day),
    D: () => again('%m/%d/%y'),
    e: () => number(day, 2, ' '),
    F: () => again('%Y-%m-%d'),
    g: () => number(((iso.year % 100) + 100) % 100),
    G: () => number(iso.year, 1),
    H: () => number(hours),
    I: () => number(hour12),
    j: () => number(yearDay + 1, 3),
    k: () => number(hours, 2, ' '),
    l: () => number(hour12, 2, ' '),
    m: () => number(month),
    M: () => number(minutes),
    n: () => '\n',
    p: () => (hours > 11 ? 'PM' : 'AM'),
    P: () => (hours > 11 ? 'pm' : 'am'),
    r: () => again('%I:%M:%S %p'),
    R: () => again('%H:%M'),
    s: () => number(epoch(clock), 1),
    S: () => number(seconds),
    t: () => '\t',
    T: () => again('%H:%M:%S'),
    u: () => number(((weekDay + 6) % 7) + 1, 1),
    U: () => number(Math.trunc((yearDay + 7 - weekDay) / 7)),
    V: () => number(iso.week),
    w: () => number(weekDay, 1),
    W: () => number(Math.trunc((yearDay + 7 - ((weekDay + 6) % 7)) / 7)),
    x: () => again('%m/%d/%y'),
    X: () => again('%H:%M:%S'),
    y: () => number(((year % 100) + 100) % 100),
    Y: () => number(year, 1),
    z: () => '+0000',
    Z: () => localZone(),
    '%': () => '%',
  };
  return fields[letter]?.();
}
