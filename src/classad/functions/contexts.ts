import { ClassAd } from '../ad.ts';
import { run } from '../compile.ts';
import { type Expr, literal } from '../expr.ts';
import { findTarget } from '../reference.ts';
import { enterScope, parentOf } from '../scopes.ts';
import { type EvalState, FAILED } from '../state.ts';
import { asCondition, ERROR, ListValue, RelTime, type Value } from '../values.ts';
import { type CallSite, caught, type FunctionDefinition, type FunctionTable, item } from './definition.ts';

/** Evaluates an expression in a nested ad, which meanwhile can see the match's other side as the ad around it does. */
function inContext(state: EvalState, expr: Expr, ad: ClassAd, depthLeft: number): Value {
  const { current, root, lexical, depth, guest, guestOther } = state;
  const side = sideOf(state, ad);
  if (side !== undefined) {
    state.guest = ad;
    state.guestOther = side === state.left ? state.right : state.left;
  }
  enterScope(state, ad);
  state.depth = depthLeft;
  const value = caught(state, () => {
    if (depthLeft <= 0 || --state.steps < 0) throw FAILED;
    return run(state, expr);
  });
  Object.assign(state, { current, root, lexical, depth, guest, guestOther });
  return value;
}

/** The side of the match that contains a nested ad. */
function sideOf(state: EvalState, ad: ClassAd): ClassAd | undefined {
  let around = ad.parent;
  for (let steps = 0; around !== undefined && steps < 1000; steps += 1) {
    for (const side of [state.left, state.right]) {
      for (let each = side; each !== undefined; each = each.chainedParent) if (each === around) return side;
    }
    around = parentOf(state, around);
  }
  return undefined;
}

/** Evaluates the first argument's expression in each ad of the list in the second, and calls `use` with the values. */
function forEach({ exprs, args, above }: CallSite, missing: Value, use: (values: Value[]) => Value) {
  const [named] = exprs;
  const [, contexts] = args;
  if (named === undefined || contexts === undefined) return (): Value => ERROR;
  return (state: EvalState): Value => {
    // A name stands for the expression it refers to, if there is one.
    const found = named.kind === 'ref' ? findTarget(state, named) : undefined;
    const expr = found === undefined ? named : (found.expr ?? literal(found.ad));
    const list = caught(state, () => contexts(state));
    if (list === undefined) return missing;
    if (!(list instanceof ListValue)) return ERROR;
    return use(
      list.items.map((_item, at) => {
        const ad = caught(state, () => item(state, list, at, above));
        if (ad instanceof ClassAd) return inContext(state, expr, ad, state.depth - above - 1);
        return ad === undefined ? undefined : ERROR;
      }),
    );
  };
}

/** The library turns the values into constants, and an interval loses its fraction as a constant. */
function inWholeSeconds(value: Value): Value {
  return value instanceof RelTime ? new RelTime(Math.trunc(value.secs) + 0) : value;
}

function overContexts(missing: Value, use: (values: Value[]) => Value): FunctionDefinition {
  return { least: 2, most: 2, make: (site) => forEach(site, missing, use) };
}

export const CONTEXTS: FunctionTable = [
  [
    'evalInEachContext',
    overContexts(
      undefined,
      (values) =>
        new ListValue(
          values.map((value): Expr => literal(inWholeSeconds(value))),
          undefined,
          true,
        ),
    ),
  ],
  ['countMatches', overContexts(0, (values) => values.filter((value) => asCondition(value) === true).length)],
];
