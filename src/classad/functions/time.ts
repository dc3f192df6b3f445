import { ClassAd } from '../ad.ts';
import { type CalendarTime, calendarTime } from '../calendar.ts';
import { evaluateAttr } from '../evaluate.ts';
import { toInt32, truncToInt32 } from '../int64.ts';
import type { EvalState } from '../state.ts';
import { localOffset, pad } from '../time-text.ts';
import { AbsTime, ERROR, isInt, Real, RelTime, type Value } from '../values.ts';
import { currentTime, toInteger } from './convert.ts';
import { type FunctionDefinition, type FunctionTable, pure } from './definition.ts';
import { type Clock, strftime } from './strftime.ts';

/** The size of strftime's buffer in the library. */
const LONGEST = 1022;

const EPOCH: CalendarTime = {
  year: 1970,
  month: 1,
  day: 1,
  hours: 0,
  minutes: 0,
  seconds: 0,
  weekDay: 4,
  yearDay: 0,
};

/** Beyond the range of C's clock, the library shows uninitialized memory; here it is the first second of 1970. */
function clockOf(secs: number): CalendarTime {
  return calendarTime(secs) ?? EPOCH;
}

function localClock(secs: number): CalendarTime {
  return clockOf(secs + localOffset(secs));
}

/** getYear() and similar: a field of an instant in the local zone, or a part of an interval. */
function field(
  ofInstant: ((clock: CalendarTime) => number) | undefined,
  ofInterval: ((secs: number) => number) | undefined,
): FunctionDefinition {
  return pure(1, 1, (time) => {
    if (time instanceof AbsTime && ofInstant !== undefined) return ofInstant(localClock(time.secs));
    if (time instanceof RelTime && ofInterval !== undefined) return ofInterval(truncToInt32(time.secs)) + 0;
    return ERROR;
  });
}

function asInstant(value: Value): AbsTime | undefined {
  if (value instanceof AbsTime) return value;
  if (!isInt(value) && !(value instanceof Real)) return undefined;
  const secs = value instanceof Real ? truncToInt32(value.value) : Number(value);
  return new AbsTime(secs, localOffset(secs));
}

function splitTime(value: Value): Value {
  if (value === undefined) return undefined;
  const instant = asInstant(value);
  if (instant !== undefined) {
    const clock = clockOf(instant.secs + instant.offset);
    return ClassAd.fromValues({
      Type: 'AbsoluteTime',
      Year: clock.year,
      Month: clock.month,
      Day: clock.day,
      Hours: clock.hours,
      Minutes: clock.minutes,
      Seconds: clock.seconds,
      Offset: instant.offset,
    });
  }
  return value instanceof RelTime ? splitInterval(value.secs) : ERROR;
}

/** A negative interval has the sign on its largest part. */
function splitInterval(secs: number): ClassAd {
  const total = Math.abs(secs);
  const whole = truncToInt32(total);
  const parts = [
    Math.trunc(whole / 86400),
    Math.trunc((whole % 86400) / 3600),
    Math.trunc((whole % 3600) / 60),
    (whole % 60) + (total - Math.floor(total)),
  ];
  if (secs < 0) {
    const largest = parts.slice(0, 3).findIndex((part) => part > 0);
    const at = largest < 0 ? 3 : largest;
    parts[at] = -(parts[at] ?? 0);
  }
  const [days, hours, minutes, seconds = 0] = parts;
  return ClassAd.fromValues({
    Type: 'RelativeTime',
    Days: days,
    Hours: hours,
    Minutes: minutes,
    Seconds: new Real(seconds),
  });
}

/** A broken-down time from a record like splitTime()'s; a part that is not an integer becomes 0. */
function clockFromAd(ad: ClassAd, state: EvalState): Clock {
  const part = (name: string): number => {
    const value = evaluateAttr(ad, name, state.options);
    return isInt(value) ? toInt32(value) : 0;
  };
  return {
    year: isInt(evaluateAttr(ad, 'Year', state.options)) ? part('Year') : 1900,
    month: isInt(evaluateAttr(ad, 'Month', state.options)) ? part('Month') : 1,
    day: part('Day'),
    hours: part('Hours'),
    minutes: part('Minutes'),
    seconds: part('Seconds'),
  };
}

function formatTime(time: Value, format: Value, state: EvalState): Value {
  const instant = asInstant(time);
  const clock = instant !== undefined ? clockOf(instant.secs + instant.offset) : time;
  const parts =
    clock instanceof ClassAd ? clockFromAd(clock, state) : instant === undefined ? undefined : (clock as Clock);
  if (parts === undefined || typeof format !== 'string') return ERROR;
  const text = strftime(format, parts);
  return text.length > LONGEST ? '' : text;
}

/** `d+hh:mm:ss` without leading zero parts; the sign is on the first. */
function interval(value: Value): Value {
  const whole = toInteger(value);
  if (!isInt(whole)) return ERROR;
  const total = toInt32(whole);
  const days = Math.trunc(total / 86400) + 0;
  const hours = Math.trunc((total % 86400) / 3600) + 0;
  const minutes = Math.trunc((total % 3600) / 60) + 0;
  const seconds = (total % 60) + 0;
  const two = (part: number): string => pad(Math.abs(part));
  if (days !== 0) return `${days}+${two(hours)}:${two(minutes)}:${two(seconds)}`;
  if (hours !== 0) return `${hours}:${two(minutes)}:${two(seconds)}`;
  return minutes !== 0 ? `${minutes}:${two(seconds)}` : String(seconds);
}

function clockFunction(read: (state: EvalState) => Value): FunctionDefinition {
  return { least: 0, most: 0, make: () => read };
}

function secondsOfDay(state: EvalState): RelTime {
  const { hours, minutes, seconds } = localClock(state.now());
  return new RelTime(hours * 3600 + minutes * 60 + seconds);
}

export const TIMES: FunctionTable = [
  ['time', clockFunction((state) => state.now())],
  ['currentTime', clockFunction(currentTime)],
  ['timeZoneOffset', clockFunction((state) => new RelTime(localOffset(state.now())))],
  ['dayTime', clockFunction(secondsOfDay)],
  ['getYear', field((clock) => clock.year, undefined)],
  ['getMonth', field((clock) => clock.month, undefined)],
  ['getDayOfYear', field((clock) => clock.yearDay, undefined)],
  ['getDayOfMonth', field((clock) => clock.day, undefined)],
  ['getDayOfWeek', field((clock) => clock.weekDay, undefined)],
  ['getDays', field(undefined, (secs) => Math.trunc(secs / 86400))],
  [
    'getHours',
    field(
      (clock) => clock.hours,
      (secs) => Math.trunc((secs % 86400) / 3600),
    ),
  ],
  [
    'getMinutes',
    field(
      (clock) => clock.minutes,
      (secs) => Math.trunc((secs % 3600) / 60),
    ),
  ],
  [
    'getSeconds',
    field(
      (clock) => clock.seconds,
      (secs) => secs % 60,
    ),
  ],
  ['splitTime', pure(1, 1, splitTime)],
  [
    'formatTime',
    {
      least: 0,
      most: 2,
      make: ({ args: [time, format] }) => {
        return (state) => {
          const when = time === undefined ? currentTime(state) : time(state);
          return formatTime(when, format === undefined ? '%c' : format(state), state);
        };
      },
    },
  ],
  ['interval', pure(1, 1, interval)],
];
