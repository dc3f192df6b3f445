import { wrap64 } from './int64.ts';
import type { Code } from './state.ts';
import type { Value } from './values.ts';
import { Real, RelTime } from './values.ts';

export type UnaryOp = '+' | '-' | '!' | '~' | '()';
export type CompareOp = '<' | '<=' | '!=' | '==' | '>=' | '>' | '=?=' | '=!=';
export type ArithmeticOp = '+' | '-' | '*' | '/' | '%';
export type BitOp = '|' | '^' | '&' | '<<' | '>>' | '>>>';
export type BinaryOp = CompareOp | ArithmeticOp | BitOp | '||' | '&&' | '[]' | '?:';

interface Node {
  /**
   * The number of operators (and selections) from here down to the deepest leaf: what evaluation takes off the depth
   * limit.
   */
  readonly height: number;
  /** The compiled form, stored by the compiler. */
  code: Code | undefined;
}

/** A constant. A relative time in an expression prints as one but evaluates to a real, as in the library. */
export interface Literal extends Node {
  readonly kind: 'literal';
  /** As written and printed. */
  readonly value: Value;
  /** What it evaluates to. */
  readonly result: Value;
}

/** `name`, `.name` (absolute) or `base.name`. */
export interface AttrRef extends Node {
  readonly kind: 'ref';
  readonly base: Expr | undefined;
  readonly name: string;
  readonly absolute: boolean;
}

export interface Unary extends Node {
  readonly kind: 'unary';
  readonly op: UnaryOp;
  readonly operand: Expr;
}

export interface Binary extends Node {
  readonly kind: 'binary';
  readonly op: BinaryOp;
  readonly left: Expr;
  readonly right: Expr;
}

export interface Ternary extends Node {
  readonly kind: 'ternary';
  readonly test: Expr;
  readonly yes: Expr;
  readonly no: Expr;
}

export interface Call extends Node {
  readonly kind: 'call';
  readonly name: string;
  readonly args: readonly Expr[];
}

export interface ListExpr extends Node {
  readonly kind: 'list';
  readonly items: readonly Expr[];
}

export interface RecordExpr extends Node {
  readonly kind: 'record';
  /** In the order written; a name written twice keeps its first spelling and its last expression. */
  readonly attrs: readonly (readonly [name: string, expr: Expr])[];
}

/** Immutable, so that ads can share them; the parent scope is found during evaluation. */
export type Expr = Literal | AttrRef | Unary | Binary | Ternary | Call | ListExpr | RecordExpr;

/** A constant. A number that is not a safe integer becomes a real. */
export function literal(given: Value): Literal {
  const value = typeof given === 'bigint' ? wrap64(given) : isFloat(given) ? new Real(given) : given;
  const result = value instanceof RelTime ? new Real(value.secs) : value;
  return { kind: 'literal', value, result, height: 0, code: undefined };
}

function isFloat(value: Value): value is number {
  return typeof value === 'number' && !Number.isSafeInteger(value);
}

export function attrRef(name: string, base?: Expr, absolute = false): AttrRef {
  return { kind: 'ref', base, name, absolute, height: base === undefined ? 0 : base.height + 1, code: undefined };
}

export function unary(op: UnaryOp, operand: Expr): Unary {
  return { kind: 'unary', op, operand, height: operand.height + 1, code: undefined };
}

export function binary(op: BinaryOp, left: Expr, right: Expr): Binary {
  return { kind: 'binary', op, left, right, height: Math.max(left.height, right.height) + 1, code: undefined };
}

export function ternary(test: Expr, yes: Expr, no: Expr): Ternary {
  const height = Math.max(test.height, yes.height, no.height) + 1;
  return { kind: 'ternary', test, yes, no, height, code: undefined };
}

export function call(name: string, args: readonly Expr[]): Call {
  // One more than the library uses for most functions; exact for strcat() and join(), which count a level.
  const height = args.reduce((most, arg) => Math.max(most, arg.height), 0) + 1;
  return { kind: 'call', name, args, height, code: undefined };
}

export function list(items: readonly Expr[]): ListExpr {
  return { kind: 'list', items, height: 0, code: undefined };
}

export function record(attrs: readonly (readonly [string, Expr])[]): RecordExpr {
  return { kind: 'record', attrs, height: 0, code: undefined };
}
