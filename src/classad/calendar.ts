/** A broken-down time like C's struct tm, but with the month from 1 and the full year. */
export interface CalendarTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  /** Days since Sunday. */
  readonly weekDay: number;
  /** Days since the first of January. */
  readonly yearDay: number;
}

const DAY = 86400;
/** A struct tm counts years from 1900 in an int, so gmtime() fails beyond. */
const MAX_YEAR = 2 ** 31 + 1899;
const MIN_YEAR = -(2 ** 31) + 1900;

function floorDiv(value: number, by: number): number {
  return Math.floor(value / by);
}

/** Days since 1970, extending the Gregorian calendar to all dates. */
function daysTo(year: number, month: number, day: number): number {
  // Years begin in March here, so that the leap day is the last day of a year.
  const shifted = month > 2 ? year : year - 1;
  const era = floorDiv(shifted, 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = floorDiv(153 * ((month + 9) % 12) + 2, 5) + day - 1;
  return era * 146097 + yearOfEra * 365 + floorDiv(yearOfEra, 4) - floorDiv(yearOfEra, 100) + dayOfYear - 719468;
}

/** Seconds since 1970 of a broken-down time, as timegm(3): fields may exceed their ranges. */
export function instantOf(
  time: Pick<CalendarTime, 'year' | 'month' | 'day' | 'hours' | 'minutes' | 'seconds'>,
): number {
  const months = time.year * 12 + time.month - 1;
  const year = floorDiv(months, 12);
  const days = daysTo(year, months - year * 12 + 1, 1) + time.day - 1;
  return days * DAY + time.hours * 3600 + time.minutes * 60 + time.seconds;
}

/** An instant (whole seconds since 1970) in UTC's calendar, within the range of C; `undefined` beyond it. */
export function calendarTime(secs: number): CalendarTime | undefined {
  const days = floorDiv(secs, DAY);
  const rest = secs - days * DAY;
  const shifted = days + 719468;
  const era = floorDiv(shifted, 146097);
  const dayOfEra = shifted - era * 146097;
  const yearOfEra = floorDiv(
    dayOfEra - floorDiv(dayOfEra, 1460) + floorDiv(dayOfEra, 36524) - floorDiv(dayOfEra, 146096),
    365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + floorDiv(yearOfEra, 4) - floorDiv(yearOfEra, 100));
  const fromMarch = floorDiv(5 * dayOfYear + 2, 153);
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  if (year > MAX_YEAR || year < MIN_YEAR) return undefined;
  return {
    year,
    month,
    day: dayOfYear - floorDiv(153 * fromMarch + 2, 5) + 1,
    hours: floorDiv(rest, 3600),
    minutes: floorDiv(rest, 60) % 60,
    seconds: rest % 60,
    weekDay: (((days + 4) % 7) + 7) % 7,
    yearDay: days - daysTo(year, 1, 1),
  };
}
