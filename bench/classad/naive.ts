import { type ClassAd, ERROR, type Expr, isInt, ListValue, type Value } from '../../src/classad/api.ts';
import { functionNamed } from '../../src/classad/functions/table.ts';
import { and, arithmetic, bitwise, or, relation, unaryOperator } from '../../src/classad/operators.ts';
import { EvalState } from '../../src/classad/state.ts';
import { asCondition } from '../../src/classad/values.ts';

/**
 * A plain walk of the same tree with the same operators: names are looked up when they are met, nothing is kept between
 * runs.
 */
export function walk(expr: Expr, my: ClassAd, target: ClassAd | undefined, now: number): Value {
  const inside = (part: Expr): Value => walk(part, my, target, now);
  switch (expr.kind) {
    case 'literal':
      return expr.value;
    case 'ref':
      return reference(expr, my, target, now);
    case 'unary':
      return unaryOperator(expr.op, inside(expr.operand));
    case 'ternary': {
      const test = asCondition(inside(expr.test));
      return test === undefined ? undefined : inside(test ? expr.yes : expr.no);
    }
    case 'call': {
      const args = expr.args.map((arg) => () => inside(arg));
      const code = functionNamed(expr.name)?.make({ name: expr.name, args, exprs: expr.args, above: 0 });
      return code === undefined ? ERROR : code(new EvalState({ now }));
    }
    case 'list':
      return new ListValue(expr.items, my, false);
    case 'record':
      return ERROR;
    case 'binary':
      return binary(expr, inside);
  }
}

function reference(expr: Expr & { kind: 'ref' }, my: ClassAd, target: ClassAd | undefined, now: number): Value {
  const side = expr.base?.kind === 'ref' ? expr.base.name.toLowerCase() : '';
  const swap = side === 'target' && target !== undefined;
  const [here, there] = swap ? [target, my] : [my, target];
  const found = here.get(expr.name);
  if (found !== undefined) return walk(found, here, there, now);
  const other = side === '' ? there?.get(expr.name) : undefined;
  return other === undefined || there === undefined ? undefined : walk(other, there, here, now);
}

function binary(expr: Expr & { kind: 'binary' }, inside: (part: Expr) => Value): Value {
  const left = inside(expr.left);
  switch (expr.op) {
    case '&&':
      return asCondition(left) === false ? false : and(left, inside(expr.right));
    case '||':
      return asCondition(left) === true ? true : or(left, inside(expr.right));
    case '?:':
      return left === undefined ? inside(expr.right) : left;
    case '[]': {
      const index = inside(expr.right);
      const item = left instanceof ListValue && isInt(index) ? left.items[Number(index)] : undefined;
      return item === undefined ? ERROR : inside(item);
    }
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
      return arithmetic(expr.op, left, inside(expr.right));
    case '|':
    case '&':
    case '^':
    case '<<':
    case '>>':
    case '>>>':
      return bitwise(expr.op, left, inside(expr.right));
    case '<':
    case '<=':
    case '==':
    case '!=':
    case '>=':
    case '>':
    case '=?=':
    case '=!=':
      return relation(expr.op, left, inside(expr.right));
  }
}
