import { ClassAd } from './ad.ts';
import { compareTextFolded, sameText } from './bytes.ts';
import type { ArithmeticOp, BitOp, CompareOp, UnaryOp } from './expr.ts';
import {
  addInt,
  bitAnd,
  bitNot,
  bitOr,
  bitXor,
  divInt,
  modInt,
  mulInt,
  negInt,
  shiftLeft,
  shiftRight,
  shiftRightUnsigned,
  subInt,
  truncToInt32,
} from './int64.ts';
import {
  AbsTime,
  asCondition,
  ERROR,
  ErrorValue,
  type Int,
  isInt,
  isNumeric,
  ListValue,
  Real,
  RelTime,
  toDouble,
  type Value,
} from './values.ts';

/**
 * A strict operator's result for exceptional operands, before types matter: error takes precedence over undefined.
 * `null` if both are ordinary.
 */
function exceptional(a: Value, b: Value): ErrorValue | undefined | null {
  if (a === ERROR || b === ERROR) return ERROR;
  return a === undefined || b === undefined ? undefined : null;
}

function decide(op: CompareOp, order: number): boolean {
  switch (op) {
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '==':
    case '=?=':
      return order === 0;
    case '!=':
    case '=!=':
      return order !== 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}

function orderOf(a: number | bigint, b: number | bigint): number {
  // NaN is unordered: every comparison except != is false.
  return a < b ? -1 : a > b ? 1 : a === b ? 0 : Number.NaN;
}

/** `< <= == != >= >`: numbers with numbers and booleans, strings ignoring case, times with times of the same kind. */
export function compare(op: CompareOp, a: Value, b: Value): Value {
  const early = exceptional(a, b);
  if (early !== null) return early;
  if (typeof a === 'string' && typeof b === 'string') {
    if (op === '==') return sameText(a, b);
    return decide(op, compareTextFolded(a, b));
  }
  if (a instanceof AbsTime && b instanceof AbsTime) return decide(op, orderOf(a.secs, b.secs));
  if (a instanceof RelTime && b instanceof RelTime) return decide(op, orderOf(a.secs, b.secs));
  if (!isNumeric(a) || !isNumeric(b)) return ERROR;
  if (a instanceof Real || b instanceof Real) return decide(op, orderOf(toDouble(a), toDouble(b)));
  return decide(op, orderOf(toInteger(a), toInteger(b)));
}

function toInteger(value: Int | boolean): Int {
  return typeof value === 'boolean' ? Number(value) : value;
}

/** Two numeric values as two integers, or as two reals if one of them is a real. */
export function promote(a: Int | Real | boolean, b: Int | Real | boolean): [Int, Int] | [Real, Real] {
  if (a instanceof Real) return [a, b instanceof Real ? b : new Real(Number(b))];
  if (b instanceof Real) return [new Real(Number(a)), b];
  return [toInteger(a), toInteger(b)];
}

function typeOf(value: Value): string {
  if (isInt(value)) return 'integer';
  if (value instanceof ClassAd) return value.shared ? 'shared record' : 'record';
  if (value instanceof ListValue) return value.shared ? 'shared list' : 'list';
  return typeof value === 'object' ? value.type : typeof value;
}

/**
 * `=?=`: true if type and value are the same, strings case-sensitively; never undefined. Two records or two lists give
 * an error.
 */
export function identical(a: Value, b: Value): boolean | ErrorValue {
  if (typeof a !== 'object' && typeof b !== 'object') return a === b;
  if (typeOf(a) !== typeOf(b)) return false;
  if (a instanceof ClassAd || a instanceof ListValue) return ERROR;
  if (a instanceof Real && b instanceof Real) return a.value === b.value;
  if (a instanceof AbsTime && b instanceof AbsTime) return a.secs === b.secs && a.offset === b.offset;
  if (a instanceof RelTime && b instanceof RelTime) return a.secs === b.secs;
  return a === b;
}

export function relation(op: CompareOp, a: Value, b: Value): Value {
  if (op !== '=?=' && op !== '=!=') return compare(op, a, b);
  const same = identical(a, b);
  return typeof same === 'boolean' ? same === (op === '=?=') : same;
}

export function arithmetic(op: ArithmeticOp, a: Value, b: Value): Value {
  if (a instanceof Real && b instanceof Real) return realArithmetic(op, a.value, b.value);
  const early = exceptional(a, b);
  if (early !== null) return early;
  const times = a instanceof AbsTime || a instanceof RelTime || b instanceof AbsTime || b instanceof RelTime;
  if (times) return timeArithmetic(op, a, b);
  if (!isNumeric(a) || !isNumeric(b)) return ERROR;
  if (a instanceof Real || b instanceof Real) return realArithmetic(op, toDouble(a), toDouble(b));
  return integerArithmetic(op, toInteger(a), toInteger(b)) ?? ERROR;
}

function integerArithmetic(op: ArithmeticOp, a: Int, b: Int): Int | undefined {
  switch (op) {
    case '+':
      return addInt(a, b);
    case '-':
      return subInt(a, b);
    case '*':
      return mulInt(a, b);
    case '/':
      return divInt(a, b);
    case '%':
      return modInt(a, b);
  }
}

/** +infinity is an error, but -infinity and NaN are not: the library only tests for HUGE_VAL. */
function realArithmetic(op: ArithmeticOp, a: number, b: number): Value {
  if (op === '%') return ERROR;
  const result = op === '+' ? a + b : op === '-' ? a - b : op === '*' ? a * b : a / b;
  return result === Number.POSITIVE_INFINITY ? ERROR : new Real(result);
}

function timeArithmetic(op: ArithmeticOp, a: Value, b: Value): Value {
  if (op === '+') {
    if (a instanceof AbsTime && b instanceof RelTime) return new AbsTime(a.secs + truncToInt32(b.secs), a.offset);
    if (a instanceof RelTime && b instanceof AbsTime) return new AbsTime(b.secs + truncToInt32(a.secs), b.offset);
    if (a instanceof RelTime && b instanceof RelTime) return new RelTime(a.secs + b.secs);
  }
  if (op === '-') {
    if (a instanceof AbsTime && b instanceof AbsTime) return new RelTime(a.secs - b.secs);
    if (a instanceof AbsTime && b instanceof RelTime) return new AbsTime(a.secs - truncToInt32(b.secs), a.offset);
    if (a instanceof RelTime && b instanceof RelTime) return new RelTime(a.secs - b.secs);
  }
  if (a instanceof RelTime && (isInt(b) || b instanceof Real)) {
    if (op === '*') return new RelTime(a.secs * toDouble(b));
    if (op === '/') return new RelTime(a.secs / toDouble(b));
  }
  if (b instanceof RelTime && (isInt(a) || a instanceof Real) && op === '*') return new RelTime(toDouble(a) * b.secs);
  return ERROR;
}

/** Integers only. */
export function bitwise(op: BitOp, a: Value, b: Value): Value {
  const early = exceptional(a, b);
  if (early !== null) return early;
  if (!isInt(a) || !isInt(b)) return ERROR;
  switch (op) {
    case '|':
      return bitOr(a, b);
    case '&':
      return bitAnd(a, b);
    case '^':
      return bitXor(a, b);
    case '<<':
      return shiftLeft(a, b);
    case '>>':
      return shiftRight(a, b);
    case '>>>':
      return shiftRightUnsigned(a, b);
  }
}

export function unaryOperator(op: UnaryOp, value: Value): Value {
  if (op === '()' || value === ERROR || value === undefined) return value;
  switch (op) {
    case '+':
      return isInt(value) || value instanceof Real || value instanceof RelTime ? value : ERROR;
    case '-':
      if (isInt(value)) return negInt(value);
      if (value instanceof Real) return new Real(-value.value);
      return value instanceof RelTime ? new RelTime(-value.secs) : ERROR;
    case '~':
      return isInt(value) ? bitNot(value) : ERROR;
    case '!': {
      const condition = asCondition(value);
      return condition === undefined ? ERROR : !condition;
    }
  }
}

/** `a && b` when `a` alone did not decide. */
export function and(a: Value, b: Value): Value {
  return logical(a, b, false);
}

/** `a || b` when `a` alone did not decide. */
export function or(a: Value, b: Value): Value {
  return logical(a, b, true);
}

/** `decisive`: the boolean that settles the result whatever the other operand is. */
function logical(a: Value, b: Value, decisive: boolean): Value {
  const left = a === undefined || a === ERROR ? a : (asCondition(a) ?? ERROR);
  if (left === ERROR || left === decisive) return left;
  const right = b === undefined || b === ERROR ? b : (asCondition(b) ?? ERROR);
  if (left === undefined)
    return right === true || right === false ? (right === decisive ? decisive : undefined) : right;
  return right;
}
