import { addInt, divInt, mulInt, subInt, truncToInt64 } from '../int64.ts';
import { ERROR, type Int, isInt, ListValue, Real, type Value } from '../values.ts';
import { toReal } from './convert.ts';
import { type Each, type FunctionTable, overLists, pure } from './definition.ts';
import { power } from './power.ts';

function rounding(round: (value: number) => number) {
  return pure(1, 1, (value) => {
    if (isInt(value)) return value;
    const real = toReal(value);
    return real instanceof Real ? truncToInt64(round(real.value)) : ERROR;
  });
}

/** The nearest integer; halves go to the even one. */
function roundEven(value: number): number {
  const below = Math.floor(value);
  const difference = value - below;
  if (difference !== 0.5) return Math.round(value);
  return below % 2 === 0 ? below : below + 1;
}

function pow(base: Value, exponent: Value): Value {
  // The library computes a power of integers in floats, adds one half and truncates: pow(-2,3) is -7.
  if (isInt(base) && isInt(exponent) && exponent >= 0) {
    return truncToInt64(power(Number(base), Number(exponent)) + 0.5);
  }
  const real = toReal(base);
  const by = toReal(exponent);
  return real instanceof Real && by instanceof Real ? new Real(power(real.value, by.value)) : ERROR;
}

/**
 * The next multiple of `unit`. With a list, the first item not below the value, or else a multiple of the last item.
 */
function quantize(each: Each, value: Value, unit: Value): Value {
  const wanted = toReal(value);
  if (!(wanted instanceof Real)) return ERROR;
  if (!(unit instanceof ListValue)) return multiple(value, wanted.value, unit);
  let last: Value = new Real(0);
  for (let at = 0; at < unit.items.length; at += 1) {
    last = each(unit, at);
    const size = toReal(last);
    if (!(size instanceof Real)) return ERROR;
    if (size.value >= wanted.value) return last;
  }
  return multiple(value, wanted.value, last);
}

function multiple(value: Value, wanted: number, unit: Value): Value {
  const size = toReal(unit);
  if (!(size instanceof Real)) return ERROR;
  if (isInt(unit)) {
    if (unit === 0) return value;
    if (isInt(value)) return integerMultiple(value, unit);
  } else if (Math.abs(size.value) <= 1e-8) return value;
  return new Real(Math.ceil(wanted / size.value) * size.value);
}

function integerMultiple(value: Int, unit: Int): Value {
  return mulInt(divInt(subInt(addInt(value, unit), 1), unit) ?? 0, unit);
}

export const MATHS: FunctionTable = [
  ['floor', rounding(Math.floor)],
  ['ceil', rounding(Math.ceil)],
  ['ceiling', rounding(Math.ceil)],
  ['round', rounding(roundEven)],
  ['pow', pure(2, 2, pow)],
  ['quantize', overLists(2, 2, quantize)],
];
