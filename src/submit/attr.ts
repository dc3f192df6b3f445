import { type Expr, isInt, literal, printExpr, printString, Real } from '../classad/api.ts';
import { expression } from './calculate.ts';

/**
 * An attribute's expression, with its text in the old ClassAd syntax. Constants are separate because commands look at
 * them.
 */
export type Attr =
  | { readonly kind: 'string'; readonly value: string; readonly text: string }
  | { readonly kind: 'int'; readonly value: number | bigint; readonly text: string }
  | { readonly kind: 'real'; readonly value: number; readonly text: string }
  | { readonly kind: 'bool'; readonly value: boolean; readonly text: string }
  | { readonly kind: 'expr'; readonly expr: Expr; readonly text: string };

export function stringAttr(value: string): Attr {
  return { kind: 'string', value, text: printString(value, 'old') };
}

export function intAttr(value: number | bigint): Attr {
  return { kind: 'int', value, text: String(value) };
}

export function realAttr(value: number): Attr {
  return { kind: 'real', value, text: printExpr(literal(new Real(value))) };
}

const TRUE: Attr = { kind: 'bool', value: true, text: 'true' };
const FALSE: Attr = { kind: 'bool', value: false, text: 'false' };

export function boolAttr(value: boolean): Attr {
  return value ? TRUE : FALSE;
}

function fromExpr(expr: Expr): Attr {
  const text = printExpr(expr);
  if (expr.kind === 'unary' && expr.op === '-' && expr.operand.kind === 'literal') {
    const { value } = expr.operand;
    if (isInt(value)) return { kind: 'int', value: -value, text };
    if (value instanceof Real) return { kind: 'real', value: -value.value, text };
  }
  if (expr.kind !== 'literal') return { kind: 'expr', expr, text };
  const { value } = expr;
  if (typeof value === 'string') return { kind: 'string', value, text };
  if (typeof value === 'boolean') return boolAttr(value);
  if (isInt(value)) return { kind: 'int', value, text };
  if (value instanceof Real) return { kind: 'real', value: value.value, text };
  return { kind: 'expr', expr, text };
}

const MOST_REMEMBERED = 4096;
const remembered = new Map<string, Attr>();

/**
 * The attribute for an expression's text; `undefined` if it does not parse. Cached, since jobs of a cluster share most.
 */
export function parseAttr(text: string): Attr | undefined {
  const known = remembered.get(text);
  if (known) return known;
  const expr = expression(text);
  if (!expr) return undefined;
  const attr = fromExpr(expr);
  if (remembered.size >= MOST_REMEMBERED) remembered.clear();
  remembered.set(text, attr);
  return attr;
}
