import { ClassAd } from './ad.ts';
import type { Binary, Call, Expr, ListExpr, RecordExpr, Ternary, Unary } from './expr.ts';
import { functionNamed } from './functions/table.ts';
import { arithmeticCode, comparisonCode, NOT_CONSTANT } from './number-code.ts';
import { and, bitwise, or, unaryOperator } from './operators.ts';
import { compileReference } from './reference.ts';
import { type Code, EvalState, FAILED } from './state.ts';
import { subscriptCode } from './subscript.ts';
import { asCondition, ERROR, ListValue, type Value } from './values.ts';

/*
 * Every expression is compiled once to a closure without depth checks: most are shallow, and `run` knows their height.
 * Only an expression that may exceed the remaining limit is compiled again with a check at every operator. `above`
 * counts the operators around a node: what the library has taken off its limit when it gets there.
 */

/** Runs an expression in the current scope of the state. */
export function run(state: EvalState, expr: Expr): Value {
  if (expr.kind === 'literal') return expr.code === undefined ? expr.result : expr.code(state);
  if (expr.height > state.depth) return compile(expr, 0, true)(state);
  let { code } = expr;
  if (code === undefined) {
    code = compile(expr, 0, false);
    expr.code = code;
  }
  return code(state);
}

/** The values of constant code, so that constants are computed once; NOT_CONSTANT for all other code. */
const constants = new WeakMap<Code, Value>();

function constant(value: Value): Code {
  const code = (): Value => value;
  constants.set(code, value);
  return code;
}

function constantOf(code: Code): Value | typeof NOT_CONSTANT {
  return constants.has(code) ? constants.get(code) : NOT_CONSTANT;
}

export function compile(expr: Expr, above: number, checked: boolean): Code {
  switch (expr.kind) {
    case 'literal':
      return expr.code ?? constant(expr.result);
    case 'ref':
      return compileReference(expr, above, checked);
    case 'list':
      return compileList(expr);
    case 'record':
      return compileRecord(expr);
    case 'call':
      return compileCall(expr, above, checked);
    case 'unary':
    case 'binary':
    case 'ternary':
      return compileOperator(expr, above + 1, checked);
  }
}

function compileOperator(expr: Unary | Binary | Ternary, depth: number, checked: boolean): Code {
  // Deeper than the limit can ever be: evaluation fails here.
  if (depth > 401) return fail;
  const code = operatorCode(expr, depth, checked);
  if (!checked) return code;
  return (state) => (state.depth < depth ? fail() : code(state));
}

function fail(): never {
  throw FAILED;
}

function operatorCode(expr: Unary | Binary | Ternary, depth: number, checked: boolean): Code {
  const inner = (part: Expr): Code => compile(part, depth, checked);
  if (expr.kind === 'ternary') return ternaryCode(inner(expr.test), inner(expr.yes), inner(expr.no));
  if (expr.kind === 'unary') {
    const operand = inner(expr.operand);
    const { op } = expr;
    if (op === '()') return operand;
    return folded([operand], (state) => unaryOperator(op, operand(state)));
  }
  const left = inner(expr.left);
  const right = inner(expr.right);
  return folded([left, right], binaryCode(expr, left, right, depth));
}

/** Computes code whose operands are all constant right away. */
function folded(operands: readonly Code[], code: Code): Code {
  return operands.every((operand) => constantOf(operand) !== NOT_CONSTANT) ? constant(code(new EvalState({}))) : code;
}

function ternaryCode(test: Code, yes: Code, no: Code): Code {
  return (state) => {
    const value = test(state);
    if (value === true) return yes(state);
    if (value === false) return no(state);
    if (value === undefined || value === ERROR) return value;
    const condition = asCondition(value);
    if (condition !== undefined) return condition ? yes(state) : no(state);
    yes(state);
    no(state);
    return ERROR;
  };
}

function binaryCode({ op }: Binary, left: Code, right: Code, depth: number): Code {
  switch (op) {
    case '&&':
      return (state) => {
        const a = left(state);
        if (a === true) {
          const b = right(state);
          return typeof b === 'boolean' ? b : and(a, b);
        }
        if (a === false || a === ERROR || asCondition(a) === false) return a === ERROR ? ERROR : false;
        return and(a, right(state));
      };
    case '||':
      return (state) => {
        const a = left(state);
        if (a === false) {
          const b = right(state);
          return typeof b === 'boolean' ? b : or(a, b);
        }
        if (a === true || a === ERROR || asCondition(a) === true) return a === ERROR ? ERROR : true;
        return or(a, right(state));
      };
    case '?:':
      return (state) => {
        const a = left(state);
        return a === undefined ? right(state) : a;
      };
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
      return arithmeticCode(op, left, right);
    case '|':
    case '&':
    case '^':
    case '<<':
    case '>>':
    case '>>>':
      return (state) => bitwise(op, left(state), right(state));
    case '[]':
      return subscriptCode(left, right, depth);
    case '<':
    case '<=':
    case '==':
    case '!=':
    case '>=':
    case '>':
    case '=?=':
    case '=!=':
      return comparisonCode(op, left, right, constantOf(right));
  }
}

function compileList(expr: ListExpr): Code {
  return (state) => new ListValue(expr.items, state.lexical, false);
}

function compileRecord(expr: RecordExpr): Code {
  return (state) => state.lexical?.nestedAd(expr) ?? ClassAd.fromRecord(expr);
}

function compileCall(expr: Call, above: number, checked: boolean): Code {
  const definition = functionNamed(expr.name);
  if (definition === undefined) return constant(ERROR);
  const { least, most } = definition;
  if (expr.args.length < least || expr.args.length > most) {
    return definition.failsOnCount === true ? fail : constant(ERROR);
  }
  const inner = above + (definition.level ?? 0);
  const args = expr.args.map((arg) => compile(arg, inner, checked));
  const code = definition.make({ name: expr.name, args, exprs: expr.args, above: inner });
  const result = definition.pure === true && !checked ? folded(args, code) : code;
  return constantOf(result) === NOT_CONSTANT ? charged(result, expr.args) : result;
}

/** Long strings in the arguments or the result cost more than one step. */
function charged(code: Code, args: readonly Expr[]): Code {
  const text = args.map((arg) => (arg.kind === 'literal' && typeof arg.result === 'string' ? arg.result : '')).join('');
  return (state) => {
    if (text.length > 255) state.charge(text);
    const value = code(state);
    if (typeof value === 'object' || typeof value === 'string') state.charge(value);
    return value;
  };
}
