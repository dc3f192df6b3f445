import { attrKey } from './bytes.ts';
import { binary, call, type Expr, attrRef, list, record, ternary, unary } from './expr.ts';

/**
 * An expression of one ad of a match with some attributes of the other ad replaced. `given`: what stands for an
 * attribute, by its name in lower case. Names without TARGET count as the other ad's too: pass none that the own ad has.
 */
export function withTargets(expr: Expr, given: ReadonlyMap<string, Expr>): Expr {
  const inside = (part: Expr): Expr => withTargets(part, given);
  switch (expr.kind) {
    case 'literal':
      return expr;
    case 'ref': {
      const { base, name, absolute } = expr;
      const isTarget = base === undefined ? !absolute : isPlain(base, 'target') || isPlain(base, 'other');
      const found = isTarget ? given.get(attrKey(name)) : undefined;
      if (found !== undefined) return found;
      return base === undefined ? expr : attrRef(name, inside(base), absolute);
    }
    case 'unary':
      return unary(expr.op, inside(expr.operand));
    case 'binary':
      return binary(expr.op, inside(expr.left), inside(expr.right));
    case 'ternary':
      return ternary(inside(expr.test), inside(expr.yes), inside(expr.no));
    case 'call':
      return call(expr.name, expr.args.map(inside));
    case 'list':
      return list(expr.items.map(inside));
    case 'record':
      return record(expr.attrs.map(([name, value]) => [name, inside(value)]));
  }
}

function isPlain(expr: Expr, name: string): boolean {
  return expr.kind === 'ref' && expr.base === undefined && attrKey(expr.name) === name;
}
