import type { Int } from './values.ts';

const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;
const TWO_63 = 2 ** 63;

/** A bigint wrapped to 64 bits, as a number if that is exact. */
export function wrap64(value: bigint): Int {
  const wrapped = BigInt.asIntN(64, value);
  const small = Number(wrapped);
  return Number.isSafeInteger(small) ? small : wrapped;
}

export function addInt(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return wrap64(BigInt(a) + BigInt(b));
}

export function subInt(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b;
    if (Number.isSafeInteger(difference)) return difference;
  }
  return wrap64(BigInt(a) - BigInt(b));
}

export function mulInt(a: Int, b: Int): Int {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b;
    if (Number.isSafeInteger(product)) return product + 0;
  }
  return wrap64(BigInt(a) * BigInt(b));
}

/** Truncating division; `undefined` for division by zero. The only overflow, -2^63 / -1, gives 2^63 - 1. */
export function divInt(a: Int, b: Int): Int | undefined {
  if (b === 0) return undefined;
  if (typeof a === 'number' && typeof b === 'number') return Math.trunc(a / b) + 0;
  if (a === INT64_MIN && b === -1) return INT64_MAX;
  return wrap64(BigInt(a) / BigInt(b));
}

/** Remainder with the sign of `a`; `undefined` for division by zero. */
export function modInt(a: Int, b: Int): Int | undefined {
  if (b === 0) return undefined;
  if (typeof a === 'number' && typeof b === 'number') return (a % b) + 0;
  return wrap64(BigInt(a) % BigInt(b));
}

export function negInt(a: Int): Int {
  return subInt(0, a);
}

/** A float truncated to int64 as x86 processors do it: NaN and out-of-range values become -2^63. */
export function truncToInt64(value: number): Int {
  if (!(value >= -TWO_63 && value < TWO_63)) return INT64_MIN;
  const whole = Math.trunc(value) + 0;
  return Number.isSafeInteger(whole) ? whole : wrap64(BigInt(whole));
}

/** The low 32 bits of an integer, signed, as stored in a C `int`. */
export function toInt32(value: Int): number {
  return typeof value === 'number' ? Number(BigInt.asIntN(32, BigInt(value))) : Number(BigInt.asIntN(32, value));
}

/** A float truncated to a C `int`; out-of-range values become -2^31. */
export function truncToInt32(value: number): number {
  const whole = Math.trunc(value) + 0;
  return whole >= -(2 ** 31) && whole < 2 ** 31 ? whole : -(2 ** 31);
}

export function bitAnd(a: Int, b: Int): Int {
  return wrap64(BigInt(a) & BigInt(b));
}

export function bitOr(a: Int, b: Int): Int {
  return wrap64(BigInt(a) | BigInt(b));
}

export function bitXor(a: Int, b: Int): Int {
  return wrap64(BigInt(a) ^ BigInt(b));
}

export function bitNot(a: Int): Int {
  return wrap64(~BigInt(a));
}

/** Shift counts are taken modulo 64, as processors do. */
export function shiftLeft(a: Int, count: Int): Int {
  return wrap64(BigInt(a) << BigInt.asUintN(6, BigInt(count)));
}

/** `>>`: modulo 64 for a non-negative number; for a negative one, the library shifts bit by bit, at most 64 times. */
export function shiftRight(a: Int, count: Int): Int {
  const value = BigInt(a);
  if (value >= 0n) return wrap64(value >> BigInt.asUintN(6, BigInt(count)));
  const times = count > 64 ? 64n : BigInt(count);
  return times <= 0n ? a : wrap64(value >> times);
}

/** `>>>`: for a negative number, one step that clears the sign, then the rest modulo 64. */
export function shiftRightUnsigned(a: Int, count: Int): Int {
  const value = BigInt(a);
  if (value >= 0n) return wrap64(value >> BigInt.asUintN(6, BigInt(count)));
  return wrap64((BigInt.asUintN(64, value) >> 1n) >> BigInt.asUintN(6, BigInt(count) - 1n));
}
