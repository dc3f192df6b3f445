import { ClassAd } from '../ad.ts';
import { sameText } from '../bytes.ts';
import { toInt32, truncToInt32, truncToInt64 } from '../int64.ts';
import { readDouble } from '../number-text.ts';
import { printValue } from '../printer.ts';
import type { EvalState } from '../state.ts';
import { FAILED } from '../state.ts';
import { absTimeText, localOffset, relTimeText } from '../time-text.ts';
import { AbsTime, ERROR, ErrorValue, type Int, isInt, ListValue, Real, RelTime, type Value } from '../values.ts';
import { type FunctionTable, pure } from './definition.ts';

/** int(): `undefined` stays undefined; anything that cannot become an integer gives ERROR. */
export function toInteger(value: Value): Int | undefined | ErrorValue {
  if (value === undefined || isInt(value)) return value;
  if (typeof value === 'boolean') return Number(value);
  if (value instanceof Real) return truncToInt64(value.value);
  if (value instanceof AbsTime) return value.secs;
  if (value instanceof RelTime) return truncToInt32(value.secs);
  if (typeof value !== 'string') return ERROR;
  const number = readDouble(value);
  return number === undefined ? ERROR : truncToInt64(number);
}

/** real(): `undefined` stays undefined; anything that cannot become a number gives ERROR. */
export function toReal(value: Value): Real | undefined | ErrorValue {
  if (value === undefined || value instanceof Real) return value;
  if (isInt(value) || typeof value === 'boolean') return new Real(Number(value));
  if (value instanceof AbsTime) return new Real(value.secs);
  if (value instanceof RelTime) return new Real(truncToInt32(value.secs));
  if (typeof value !== 'string') return ERROR;
  const number = readDouble(value);
  return number === undefined ? ERROR : new Real(number);
}

/** string(): prints numbers, lists and records in the new syntax. */
export function toText(value: Value): string | undefined | ErrorValue {
  if (value === undefined || value instanceof ErrorValue || typeof value === 'string') return value;
  if (value instanceof AbsTime) return absTimeText(value);
  if (value instanceof RelTime) return relTimeText(truncToInt32(value.secs));
  return printValue(value, 'new');
}

function toBool(value: Value): Value {
  if (value === undefined || typeof value === 'boolean') return value;
  if (isInt(value)) return value !== 0;
  if (value instanceof Real) return value.value !== 0;
  if (value instanceof RelTime) return truncToInt32(value.secs) !== 0;
  if (typeof value !== 'string') return ERROR;
  if (sameText(value, 'true')) return true;
  return sameText(value, 'false') ? false : undefined;
}

/** The zone in absTime()'s second argument; `null` if its type is wrong. */
function zone(value: Value): number | null {
  if (isInt(value)) return toInt32(value);
  if (value instanceof Real) return truncToInt32(value.value);
  return value instanceof RelTime ? truncToInt32(value.secs) : null;
}

function toAbsTime(value: Value, offset: number | undefined): Value {
  if (value === undefined || value instanceof AbsTime) return value;
  // A constant string is converted by the parser; a computed one is returned unchanged.
  if (typeof value === 'string') return value;
  const secs = isInt(value)
    ? toInt32(value)
    : value instanceof Real || value instanceof RelTime
      ? truncToInt32(value instanceof Real ? value.value : value.secs)
      : undefined;
  if (secs === undefined) return ERROR;
  const east = offset ?? localOffset(secs);
  if (isInt(value) && east === -1) throw FAILED;
  return new AbsTime(secs, east);
}

function toRelTime(value: Value): Value {
  if (value === undefined || value instanceof RelTime) return value;
  if (isInt(value)) return new RelTime(toInt32(value));
  if (value instanceof Real) return new RelTime(value.value);
  if (value instanceof AbsTime) return new RelTime(value.secs);
  return typeof value === 'string' ? new RelTime(0) : ERROR;
}

export function currentTime(state: EvalState): AbsTime {
  const now = state.now();
  return new AbsTime(now, localOffset(now));
}

function isA(test: (value: Value) => boolean): ReturnType<typeof pure> {
  return pure(1, 1, test);
}

export const CONVERSIONS: FunctionTable = [
  ['isUndefined', isA((value) => value === undefined)],
  ['isError', isA((value) => value === ERROR)],
  ['isString', isA((value) => typeof value === 'string')],
  ['isInteger', isA(isInt)],
  ['isReal', isA((value) => value instanceof Real)],
  ['isBoolean', isA((value) => typeof value === 'boolean')],
  ['isClassAd', isA((value) => value instanceof ClassAd)],
  ['isList', isA((value) => value instanceof ListValue)],
  ['isAbstime', isA((value) => value instanceof AbsTime)],
  ['isReltime', isA((value) => value instanceof RelTime)],
  ['int', pure(1, 1, toInteger)],
  ['real', pure(1, 1, toReal)],
  ['string', pure(1, 1, toText)],
  ['bool', pure(1, 1, toBool)],
  [
    'absTime',
    {
      least: 0,
      most: 2,
      make: ({ args: [time, second] }) => {
        if (time === undefined) return currentTime;
        if (second === undefined) return (state) => toAbsTime(time(state), undefined);
        return (state) => {
          const value = time(state);
          const offset = zone(second(state));
          return offset === null ? ERROR : toAbsTime(value, offset);
        };
      },
    },
  ],
  [
    'relTime',
    {
      least: 1,
      most: 2,
      make: ({ args: [time, second] }) => {
        if (time === undefined || second !== undefined) return () => ERROR;
        return (state) => toRelTime(time(state));
      },
    },
  ],
];
