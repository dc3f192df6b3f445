import type { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';

/** The error value. `ERROR` is the only instance; compare by identity. */
export class ErrorValue {
  readonly type = 'error';
}

/** A 64-bit float. Boxed to keep `1` (integer) and `1.0` (real) apart. */
export class Real {
  readonly type = 'real';
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** An instant: seconds since 1970 (UTC) and the zone in which it is displayed, in seconds east of Greenwich. */
export class AbsTime {
  readonly type = 'abstime';
  readonly secs: number;
  readonly offset: number;

  constructor(secs: number, offset: number) {
    this.secs = secs;
    this.offset = offset;
  }
}

/** An interval in seconds, possibly fractional. */
export class RelTime {
  readonly type = 'reltime';
  readonly secs: number;

  constructor(secs: number) {
    this.secs = secs;
  }
}

/** A list whose items are expressions, evaluated only on access. */
export class ListValue {
  readonly type = 'list';
  readonly items: readonly Expr[];
  /** The ad in which the list was written; a subscript evaluates the item there. */
  readonly scope: ClassAd | undefined;
  /** Made by a function rather than written in an ad; under `=?=` the library considers these different types. */
  readonly shared: boolean;

  constructor(items: readonly Expr[], scope: ClassAd | undefined, shared: boolean) {
    this.items = items;
    this.scope = scope;
    this.shared = shared;
  }
}

/**
 * What an expression evaluates to. Integers are int64: a `number` if safe (|n| < 2^53), otherwise a `bigint`, never
 * both for the same integer. `undefined` is ClassAd's undefined.
 */
export type Value =
  | undefined
  | boolean
  | number
  | bigint
  | string
  | Real
  | ErrorValue
  | AbsTime
  | RelTime
  | ListValue
  | ClassAd;

export type Int = number | bigint;

export const ERROR = new ErrorValue();

export function isInt(value: Value): value is Int {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Integer, real or boolean: what arithmetic accepts as a number. */
export function isNumeric(value: Value): value is Int | Real | boolean {
  return isInt(value) || typeof value === 'boolean' || value instanceof Real;
}

/** A numeric value as a float (true is 1). */
export function toDouble(value: Int | Real | boolean): number {
  return value instanceof Real ? value.value : Number(value);
}

/** The value as a condition: booleans, and numbers (true if not zero); `undefined` for any other type. */
export function asCondition(value: Value): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return value !== 0;
  if (typeof value === 'bigint') return true;
  // C++ considers NaN true.
  if (value instanceof Real) return value.value !== 0;
  return undefined;
}
