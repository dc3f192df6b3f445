import { sameText } from './bytes.ts';
import type { ArithmeticOp, CompareOp } from './expr.ts';
import { divInt, modInt } from './int64.ts';
import { arithmetic, relation } from './operators.ts';
import type { Code } from './state.ts';
import { ERROR, Real, type Value } from './values.ts';

/*
 * Fast paths of arithmetic and comparisons for the most common operands: safe integers, reals, texts. Everything else
 * is left to the operators, which define the semantics; the fast paths give the same results sooner.
 */

/** Stands for an operand that is not constant. */
export const NOT_CONSTANT = Symbol('not constant');

/** A safe integer or a real as a float; NaN for everything else (and for a NaN real), which is left to the operator. */
function float(value: Value): number {
  if (typeof value === 'number') return value;
  return value instanceof Real ? value.value : Number.NaN;
}

/** One closure per operator, so that the engine can optimize each for its operands. */
export function arithmeticCode(op: ArithmeticOp, left: Code, right: Code): Code {
  switch (op) {
    case '+':
      return (state) => {
        const a = left(state);
        const b = right(state);
        if (typeof a !== 'number' || typeof b !== 'number') return reals('+', a, b, float(a) + float(b));
        const result = a + b;
        return Number.isSafeInteger(result) ? result : arithmetic('+', a, b);
      };
    case '-':
      return (state) => {
        const a = left(state);
        const b = right(state);
        if (typeof a !== 'number' || typeof b !== 'number') return reals('-', a, b, float(a) - float(b));
        const result = a - b;
        return Number.isSafeInteger(result) ? result : arithmetic('-', a, b);
      };
    case '*':
      return (state) => {
        const a = left(state);
        const b = right(state);
        if (typeof a !== 'number' || typeof b !== 'number') return reals('*', a, b, float(a) * float(b));
        const result = a * b + 0;
        return Number.isSafeInteger(result) ? result : arithmetic('*', a, b);
      };
    case '/':
      return (state) => {
        const a = left(state);
        const b = right(state);
        if (typeof a === 'number' && typeof b === 'number') return divInt(a, b) ?? ERROR;
        return reals('/', a, b, float(a) / float(b));
      };
    case '%':
      return (state) => {
        const a = left(state);
        const b = right(state);
        return typeof a === 'number' && typeof b === 'number' ? (modInt(a, b) ?? ERROR) : arithmetic('%', a, b);
      };
  }
}

function reals(op: ArithmeticOp, a: Value, b: Value, result: number): Value {
  return result < Number.POSITIVE_INFINITY ? new Real(result) : arithmetic(op, a, b);
}

type Order = Exclude<CompareOp, '=?=' | '=!='>;

/** `constant`: the value of the right operand, if it is constant. */
export function comparisonCode(op: CompareOp, left: Code, right: Code, constant: Value | typeof NOT_CONSTANT): Code {
  if (op === '=?=' || op === '=!=') return (state) => relation(op, left(state), right(state));
  return typeof constant === 'number' ? withNumber(op, left, constant) : withAny(op, left, right);
}

function withNumber(op: Order, left: Code, b: number): Code {
  switch (op) {
    case '==':
      return (state) => {
        const a = left(state);
        return typeof a === 'number' ? a === b : relation('==', a, b);
      };
    case '!=':
      return (state) => {
        const a = left(state);
        return typeof a === 'number' ? a !== b : relation('!=', a, b);
      };
    case '<':
      return (state) => {
        const a = left(state);
        const x = float(a);
        return x < b || (x >= b ? false : relation('<', a, b));
      };
    case '<=':
      return (state) => {
        const a = left(state);
        const x = float(a);
        return x <= b || (x > b ? false : relation('<=', a, b));
      };
    case '>':
      return (state) => {
        const a = left(state);
        const x = float(a);
        return x > b || (x <= b ? false : relation('>', a, b));
      };
    case '>=':
      return (state) => {
        const a = left(state);
        const x = float(a);
        return x >= b || (x < b ? false : relation('>=', a, b));
      };
  }
}

function withAny(op: Order, left: Code, right: Code): Code {
  switch (op) {
    case '==':
      return (state) => {
        const a = left(state);
        const b = right(state);
        if (typeof a === 'number' && typeof b === 'number') return a === b;
        if (typeof a === 'string' && typeof b === 'string') return sameText(a, b);
        if (typeof a === 'boolean' && typeof b === 'boolean') return a === b;
        return relation('==', a, b);
      };
    case '!=':
      return (state) => relation('!=', left(state), right(state));
    case '<':
      return (state) => {
        const a = left(state);
        const b = right(state);
        const x = float(a);
        const y = float(b);
        return x < y || (x >= y ? false : relation('<', a, b));
      };
    case '<=':
      return (state) => {
        const a = left(state);
        const b = right(state);
        const x = float(a);
        const y = float(b);
        return x <= y || (x > y ? false : relation('<=', a, b));
      };
    case '>':
      return (state) => {
        const a = left(state);
        const b = right(state);
        const x = float(a);
        const y = float(b);
        return x > y || (x <= y ? false : relation('>', a, b));
      };
    case '>=':
      return (state) => {
        const a = left(state);
        const b = right(state);
        const x = float(a);
        const y = float(b);
        return x >= y || (x < y ? false : relation('>=', a, b));
      };
  }
}
