import type { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';

/** The conditions that must all hold: splits `&&` and follows names that stand for such expressions. */
export function clausesOf(expr: Expr, ad: ClassAd, depth = 0): Expr[] {
  const bare = stripped(expr);
  if (bare.kind === 'binary' && bare.op === '&&') {
    const clauses: Expr[] = [];
    let node: Expr = bare;
    while (node.kind === 'binary' && node.op === '&&') {
      clauses.unshift(...clausesOf(node.right, ad, depth + 1));
      node = stripped(node.left);
    }
    return [...clausesOf(node, ad, depth + 1), ...clauses];
  }
  const inner = bare.kind === 'ref' && isOwn(bare) && depth < 50 ? ad.get(bare.name) : undefined;
  return inner === undefined || inner.kind === 'literal' ? [bare] : clausesOf(inner, ad, depth + 10);
}

function isOwn(ref: Expr & { kind: 'ref' }): boolean {
  if (ref.base === undefined) return !ref.absolute;
  return ref.base.kind === 'ref' && ref.base.base === undefined && ref.base.name.toLowerCase() === 'my';
}

function stripped(expr: Expr): Expr {
  let bare = expr;
  while (bare.kind === 'unary' && bare.op === '()') bare = bare.operand;
  return bare;
}
