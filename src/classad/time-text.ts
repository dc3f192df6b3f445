import { calendarTime } from './calendar.ts';
import { truncToInt32 } from './int64.ts';
import { formatGeneral } from './number-text.ts';
import { AbsTime, RelTime } from './values.ts';

/** The offset of the local zone at a time (seconds since 1970), in seconds east of Greenwich. */
export function localOffset(secs: number): number {
  const minutes = new Date(secs * 1000).getTimezoneOffset();
  return Number.isNaN(minutes) ? 0 : -minutes * 60 + 0;
}

/** The local zone's name outside daylight saving time: C's tzname[0]. */
export function localZone(): string {
  const year = new Date().getUTCFullYear();
  const [january, july] = [0, 6].map((month) => new Date(Date.UTC(year, month, 15)));
  if (january === undefined || july === undefined) return '';
  const standard = january.getTimezoneOffset() >= july.getTimezoneOffset() ? january : july;
  // Each locale only knows the short zone names of its own part of the world.
  const names = ['en-US', 'en-GB', 'en-AU'].map((locale) => {
    const parts = new Intl.DateTimeFormat(locale, { timeZoneName: 'short' }).formatToParts(standard);
    return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
  });
  return names.find((name) => /^[A-Z]+$/.test(name)) ?? names[0] ?? '';
}

export function pad(value: number, width = 2, filler = '0'): string {
  const digits = String(Math.abs(value)).padStart(value < 0 ? width - 1 : width, filler);
  return value < 0 ? `-${digits}` : digits;
}

/** C's atoi: the digits at the beginning, or else 0. */
function leading(text: string): number {
  return Number(/^[0-9]+/.exec(text)?.[0] ?? 0);
}

/**
 * `2003-01-25T09:00:00-06:00`, read as the library does: yyyy, then up to five two-digit numbers separated by
 * non-digits, then a zone (Z, ±hhmm, ±hh:mm; the local zone if absent). `undefined` if it is not a time.
 */
export function parseAbsTime(source: string): AbsTime | undefined {
  const { text, offset } = takeZone(source);
  const fields: number[] = [];
  let at = text.search(/[0-9]/);
  if (at < 0 || at > text.length - 4) return undefined;
  fields.push(leading(text.slice(at, at + 4)));
  at = nextDigit(text, at + 4);
  while (fields.length < 6) {
    if (at <= text.length - 2) {
      fields.push(leading(text.slice(at, at + 2)));
      at += 2;
    } else fields.push(fields.length === 1 ? 1 : 0);
    at = nextDigit(text, at);
  }
  if (at < text.length) return undefined;
  const [year = 0, month = 1, day = 0, hours = 0, minutes = 0, seconds = 0] = fields;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hours, minutes, seconds);
  const local = date.getTime() / 1000;
  const zone = offset ?? localOffset(local - localOffset(local));
  if (local - localOffset(local) === -1 || zone === -1) return undefined;
  return new AbsTime(local - zone, zone);
}

function nextDigit(text: string, from: number): number {
  let at = from;
  while (at < text.length && !/[0-9]/.test(text.charAt(at))) at += 1;
  return at;
}

function takeZone(source: string): { text: string; offset: number | undefined } {
  const last = source.trimEnd().length - 1;
  if (last > 0 && /[zZ]/.test(source.charAt(last)))
    return { text: source.slice(0, last) + source.slice(last + 1), offset: 0 };
  let text = source;
  const { length } = text;
  if (length > 5 && /[+-]/.test(text.charAt(length - 5))) return numericZone(text);
  if (length > 6 && /[+-]/.test(text.charAt(length - 6)) && text[length - 3] === ':') {
    text = text.slice(0, length - 3) + text.slice(length - 2);
    return numericZone(text);
  }
  return { text, offset: undefined };
}

function numericZone(text: string): { text: string; offset: number | undefined } {
  const zone = /([+-])([0-9]{2})([0-9]{2})$/.exec(text);
  if (zone === null) return { text, offset: undefined };
  const offset = Number(zone[2]) * 3600 + Number(zone[3]) * 60;
  return { text: text.slice(0, -5), offset: zone[1] === '-' ? -offset + 0 : offset };
}

/** `[-][[[days+]hh:]mm:]ss[.fff]`, or with letters: `1d2h3m4s`. `undefined` if it is not an interval. */
export function parseRelTime(source: string): RelTime | undefined {
  const found = matchFromEnd(source);
  if (found === undefined) return undefined;
  const { sign, days, hours, minutes, seconds } = found;
  const whole = Number(days) * 86400 + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds || 0);
  return new RelTime((sign === '-' ? -1 : 1) * whole);
}

/** The library reads from the end: seconds, then a part with m or `:`, then h or `:`, then d or `+`, then a sign. */
function matchFromEnd(
  source: string,
): { sign: string; days: string; hours: string; minutes: string; seconds: string } | undefined {
  let rest = source.trimEnd();
  const take = (pattern: RegExp): string => {
    const found = pattern.exec(rest);
    if (found === null) return '';
    rest = rest.slice(0, found.index).trimEnd();
    return found[1] ?? '';
  };
  const seconds = /[sS0-9]$/.test(rest) ? take(/((?:[0-9]*\.)?[0-9]*)\s*[sS]?$/) : '';
  const minutes = /[mM:]$/.test(rest) ? take(/([0-9]*)\s*[mM:]$/) : '';
  const hours = /[hH:]$/.test(rest) ? take(/([0-9]*)\s*[hH:]$/) : '';
  const days = /[dD+]$/.test(rest) ? take(/([0-9]*)\s*[dD+]$/) : '';
  const sign = rest.endsWith('-') ? '-' : '';
  if (sign !== '') rest = rest.slice(0, -1);
  return rest.trimEnd() === '' ? { sign, days, hours, minutes, seconds } : undefined;
}

/** `2020-01-01T00:00:00-00:00`; UTC has the sign `-`. */
export function absTimeText(time: AbsTime): string {
  const at = calendarTime(time.secs + time.offset);
  const day = at === undefined ? '1970-01-01' : `${at.year}-${pad(at.month)}-${pad(at.day)}`;
  const clock = at === undefined ? '00:00:00' : `${pad(at.hours)}:${pad(at.minutes)}:${pad(at.seconds)}`;
  const sign = time.offset > 0 ? '+' : '-';
  return `${day}T${clock}${sign}${zoneText(time.offset)}`;
}

function zoneText(offset: number): string {
  // The smallest int has no positive counterpart in C and stays negative.
  const size = offset === -(2 ** 31) ? offset : Math.abs(offset);
  return `${pad(Math.trunc(size / 3600))}:${pad(Math.trunc(size / 60) % 60)}`;
}

/**
 * `[-][days+][hh:][mm:]ss`, with fractions of a second printed as by C's %02g. Values beyond an int look odd, as in C.
 */
export function relTimeText(secs: number): string {
  const total = Math.abs(secs);
  const fraction = total - Math.floor(total);
  const whole = truncToInt32(total);
  const inDay = whole % 86400;
  const days = Math.trunc(whole / 86400);
  const hours = Math.trunc(inDay / 3600);
  const minutes = Math.trunc((inDay % 3600) / 60);
  const rest = (inDay % 3600) % 60;
  const seconds = secondsText(rest, fraction);
  const sign = secs < 0 ? '-' : '';
  if (days !== 0) return `${sign}${days}+${pad(hours)}:${pad(minutes)}:${seconds}`;
  if (hours !== 0) return `${sign}${pad(hours)}:${pad(minutes)}:${seconds}`;
  return minutes !== 0 ? `${sign}${pad(minutes)}:${seconds}` : `${sign}${seconds}`;
}

function secondsText(whole: number, fraction: number): string {
  if (fraction === 0) return pad(whole);
  return Number.isNaN(fraction) ? '-nan' : formatGeneral(whole + fraction, 6).padStart(2, '0');
}
