import { toBytes } from '../bytes.ts';
import { run } from '../compile.ts';
import { toInt32 } from '../int64.ts';
import { parseCached } from '../parse.ts';
import { PrettyPrinter, printExpr } from '../printer.ts';
import { findTarget } from '../reference.ts';
import { externalReferences } from '../references.ts';
import { type EvalState, FAILED } from '../state.ts';
import { asCondition, ERROR, isInt, Real, type Value } from '../values.ts';
import { toText } from './convert.ts';
import type { CallSite, FunctionTable } from './definition.ts';
import { flagsOf, search } from './regex.ts';

function ifThenElse({ args: [test, yes, no] }: CallSite) {
  return (state: EvalState): Value => {
    const value = test?.(state);
    if (value === undefined) return undefined;
    const condition = asCondition(value);
    if (condition === undefined) return ERROR;
    return condition ? yes?.(state) : no?.(state);
  };
}

/** eval(text): parsed in the new syntax, whatever the syntax around it, and evaluated in the ad of the call. */
function evalText({ args: [arg], above }: CallSite) {
  return (state: EvalState): Value => {
    const text = toText(arg?.(state));
    if (typeof text !== 'string') return ERROR;
    const { depth, lexical } = state;
    if (depth - above <= 0) throw FAILED;
    const expr = parseCached(text, state.old);
    if (expr === undefined) return ERROR;
    state.depth = depth - above - 1;
    state.lexical = state.current;
    const value = run(state, expr);
    state.depth = depth;
    state.lexical = lexical;
    return value;
  };
}

function random({ args: [limit] }: CallSite) {
  return (state: EvalState): Value => {
    const most = limit === undefined ? new Real(1) : limit(state);
    if (isInt(most)) {
      const below = toInt32(most);
      if (below <= 0) throw FAILED;
      return Math.floor(state.random() * 2 ** 31) % below;
    }
    if (!(most instanceof Real)) return ERROR;
    if (most.value <= 0) throw FAILED;
    return new Real(state.random() * most.value);
  };
}

/** unparse(name): an attribute's expression in the current ad, laid out in lines; "" if there is none. */
function unparse({ exprs: [expr] }: CallSite) {
  if (expr?.kind !== 'ref') return (): Value => ERROR;
  const name = printExpr(expr, 'new');
  return (state: EvalState): Value => {
    const found = state.current?.get(name);
    return found === undefined ? '' : new PrettyPrinter().expr(found);
  };
}

/** unresolved(name [, pattern]): what an attribute's expression refers to that this ad does not have. */
function unresolved({ exprs: [expr], args: [, pattern] }: CallSite) {
  if (expr?.kind !== 'ref') return (): Value => ERROR;
  return (state: EvalState): Value => {
    const { current } = state;
    const found = findTarget(state, expr);
    if (found === undefined || current === undefined) return undefined;
    const { ad } = found;
    const names = found.expr === undefined ? [] : externalReferences(state, found.expr, ad);
    const plain = (names ?? []).map((name) => name.replace(/^target\./i, ''));
    state.current = current;
    if (pattern === undefined) return plain.join(',');
    const text = pattern(state);
    if (typeof text !== 'string') throw FAILED;
    return (
      search(state, text, flagsOf('i'), (find) => {
        return plain.some((name) => find(toBytes(name), 0, { notEmpty: true }) !== undefined);
      }) ?? ERROR
    );
  };
}

export const CONTROL: FunctionTable = [
  ['ifThenElse', { least: 3, most: 3, make: ifThenElse }],
  ['eval', { least: 1, most: 1, make: evalText }],
  ['random', { least: 0, most: 1, make: random }],
  [
    'debug',
    {
      least: 1,
      most: 1,
      make:
        ({ args: [arg] }) =>
        (state) =>
          arg?.(state),
    },
  ],
  ['unparse', { least: 1, most: 1, make: unparse }],
  ['unresolved', { least: 1, most: 2, make: unresolved }],
];
