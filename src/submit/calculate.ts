import {
  ClassAdSyntaxError,
  evaluate,
  type Expr,
  isInt,
  parseExpr,
  printValue,
  Real,
  toDouble,
  type Value,
} from '../classad/api.ts';
import { trim } from './text.ts';

/** The expression, or `undefined` if the text is not one. */
export function expression(text: string): Expr | undefined {
  try {
    return parseExpr(text);
  } catch {
    return undefined;
  }
}

/** Why a text is not an expression: the position, and what was expected there. */
export function syntaxReason(text: string): string | undefined {
  try {
    parseExpr(text);
    return undefined;
  } catch (thrown) {
    return thrown instanceof ClassAdSyntaxError ? thrown.message : String(thrown);
  }
}

/** The value of an expression by itself, with no ad around it. */
function valueOf(text: string): Value {
  const expr = expression(text);
  return expr === undefined ? undefined : evaluate(expr);
}

function isPlainInteger(text: string): boolean {
  return /^[ \t\n\v\f\r]*[+-]?\d+[ \t\n\v\f\r]*$/.test(text);
}

const INT64 = 2n ** 63n;

/** The integer that a value stands for: digits, or an expression by itself (reals are truncated, true is 1). */
export function integerOf(text: string): bigint | undefined {
  if (isPlainInteger(text)) {
    const value = BigInt(text.trim().replace(/^\+/, ''));
    return value >= INT64 ? INT64 - 1n : value < -INT64 ? -INT64 : value;
  }
  const value = valueOf(text);
  if (isInt(value)) return BigInt(value);
  if (typeof value === 'boolean') return value ? 1n : 0n;
  if (!(value instanceof Real)) return undefined;
  // A value that 64 bits cannot hold becomes the smallest integer, as processors convert it.
  return Math.abs(value.value) < 2 ** 63 ? BigInt(Math.trunc(value.value)) : -INT64;
}

const REAL = /^([+-]?)(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|0x([\da-f]+)|(inf(?:inity)?)|nan)$/i;

/** A number as read by C's strtod, which also accepts 0x1F, inf and nan; otherwise an expression by itself. */
export function realOf(text: string): number | undefined {
  const found = REAL.exec(trim(text));
  if (found) {
    const [, sign, decimal, hexadecimal, infinity] = found;
    const size = decimal === undefined ? (hexadecimal === undefined ? undefined : `0x${hexadecimal}`) : decimal;
    const value = size === undefined ? (infinity === undefined ? Number.NaN : Number.POSITIVE_INFINITY) : Number(size);
    return sign === '-' ? -value : value;
  }
  const value = valueOf(text);
  return isInt(value) || typeof value === 'boolean' || value instanceof Real ? toDouble(value) : undefined;
}

export function booleanOf(text: string): boolean | undefined {
  const plain = /^(true|1|false|0)[ \t\n\v\f\r]*$/i.exec(text)?.[1]?.toLowerCase();
  if (plain !== undefined) return plain === 'true' || plain === '1';
  const value = valueOf(text);
  if (typeof value === 'boolean') return value;
  return isInt(value) || value instanceof Real ? toDouble(value) !== 0 : undefined;
}

/** The string value of an expression; `undefined` if it has another type. */
export function stringOf(text: string): string | undefined {
  const value = valueOf(text);
  return typeof value === 'string' ? value : undefined;
}

/** The value of an expression, printed in the strict syntax; `undefined` if the text is not an expression. */
export function printed(text: string): string | undefined {
  const expr = expression(text);
  return expr === undefined ? undefined : printValue(evaluate(expr), 'new');
}

/** A number of bytes with a unit, in units of `base` bytes, rounded up. */
export interface Size {
  readonly value: number;
  /** The remaining text from the separator on; '' if there is none. */
  readonly rest: string;
}

const MULTIPLES: Readonly<Record<string, number>> = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/**
 * `2`, `2.5 G`, `100KB`: K, M, G and T are powers of 1024, and a number without a unit is in units of `base`. The
 * number may end at one of `separators`.
 */
export function sizeOf(text: string, base: number, separators = ''): Size | undefined {
  const found = /^\s*([+-]?\d*)(?:\.(\d*))?\s*(?:([kmgt])b?)?\s*/i.exec(text);
  if (!found || (found[1] === '' && found[2] === undefined) || /^[+-]$/.test(found[1] ?? '')) return undefined;
  const rest = text.slice(found[0].length);
  if (rest !== '' && !separators.includes(rest.charAt(0))) return undefined;
  const unit = MULTIPLES[found[3]?.toLowerCase() ?? ''] ?? base;
  const thousandths = Number((found[2] ?? '').slice(0, 3).padEnd(3, '0')) / 1000;
  return { value: Math.trunc(Math.trunc((Number(found[1] ?? 0) + thousandths) * unit + base - 1) / base), rest };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** The seconds in `90s`, `45m`, `1h30m` or `2 days`, rounded up; `undefined` without a unit, or for anything else. */
export function secondsOf(text: string): number | undefined {
  const part = /(\d+(?:\.\d+)?)\s*(s|m|h|d|w|sec|min|seconds?|minutes?|hours?|days?|weeks?)(?![a-z])\s*/gi;
  const found = [...text.matchAll(part)];
  if (found.length === 0 || text.replace(part, '').trim() !== '') return undefined;
  const seconds = found.map(
    ([, count, unit = '']) => Number(count) * (UNIT_SECONDS[unit.charAt(0).toLowerCase()] ?? 0),
  );
  return Math.ceil(seconds.reduce((sum, one) => sum + one, 0));
}
