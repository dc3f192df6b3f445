/** How an event's date is written (HTCondor manual, DEFAULT_USERLOG_FORMAT_OPTIONS). */
export interface DateStyle {
  /** `11/20 23:39:02` rather than `2026-11-20 23:39:02`. */
  readonly legacy?: boolean;
  /** UTC rather than local time; ISO dates then end in Z. */
  readonly utc?: boolean;
  /** With milliseconds. */
  readonly subSecond?: boolean;
}

/** `at` is in Unix milliseconds; `joiner` separates date and time. */
export function formatEventTime(at: number, style: DateStyle = {}, joiner: ' ' | 'T' = ' '): string {
  const d = new Date(at);
  const [year, month, day, hour, minute, second] = style.utc
    ? [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()]
    : [d.getFullYear(), d.getMonth(), d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()];
  const date = style.legacy
    ? `${two(month + 1)}/${two(day)}`
    : `${String(year).padStart(4, '0')}-${two(month + 1)}-${two(day)}`;
  const fraction = style.subSecond ? `.${String(d.getMilliseconds()).padStart(3, '0')}` : '';
  const zone = style.utc && !style.legacy ? 'Z' : '';
  return `${date}${joiner}${two(hour)}:${two(minute)}:${two(second)}${fraction}${zone}`;
}

const TIME = '(\\d{1,2}):(\\d\\d):(\\d\\d)(?:\\.(\\d{1,6}))?(Z?)';
const ISO = new RegExp(`^(\\d{4})-(\\d\\d)-(\\d\\d)[ T]${TIME}$`);
const LEGACY = new RegExp(`^(\\d{1,2})/(\\d{1,2}) ${TIME}$`);

/**
 * Unix milliseconds, or `undefined` if the text is not a date. A legacy date has no year, so it is taken as the latest
 * such day that is at most one day after `now`.
 */
export function parseEventTime(text: string, now: number): number | undefined {
  const iso = ISO.exec(text);
  if (iso) return moment(Number(iso[1]), iso.slice(2));
  const legacy = LEGACY.exec(text);
  if (!legacy) return undefined;
  const year = new Date(now).getFullYear();
  const found = moment(year, legacy.slice(1));
  return found > now + 86_400_000 ? moment(year - 1, legacy.slice(1)) : found;
}

function moment(
  year: number,
  [month, day, hour, minute, second, fraction, zone]: readonly (string | undefined)[],
): number {
  const ms = fraction ? Math.floor(Number(`0.${fraction}`) * 1000 + 1e-6) : 0;
  const all = [year, Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second), ms] as const;
  return zone ? Date.UTC(...all) : new Date(...all).getTime();
}

function two(n: number): string {
  return String(n).padStart(2, '0');
}
