import { run } from '../compile.ts';
import type { Expr } from '../expr.ts';
import { type Code, EvalFailed, type EvalState, FAILED } from '../state.ts';
import { ERROR, type ListValue, type Value } from '../values.ts';

export interface CallSite {
  readonly name: string;
  readonly args: readonly Code[];
  readonly exprs: readonly Expr[];
  /** Operators around the arguments, in the expression that the call stands in. */
  readonly above: number;
}

/** A builtin function. With any other number of arguments than `least` to `most` the call is an error. */
export interface FunctionDefinition {
  readonly least: number;
  readonly most: number;
  /** Levels that the arguments stand deeper than the call (1 for strcat and join). */
  readonly level?: number;
  /** A wrong number of arguments makes the evaluation fail, instead of an error value. */
  readonly failsOnCount?: boolean;
  /** Depends on nothing but its arguments, none of which is a list or a record to look into. */
  readonly pure?: boolean;
  make(site: CallSite): Code;
}

export type FunctionTable = readonly (readonly [name: string, definition: FunctionDefinition])[];

/** A function of its arguments' values alone. */
export function pure(least: number, most: number, compute: (...values: Value[]) => Value): FunctionDefinition {
  return { least, most, pure: true, make: ({ args }) => apply(args, compute) };
}

function apply(args: readonly Code[], compute: (...values: Value[]) => Value): Code {
  const [first, second, third] = args;
  if (first === undefined) return () => compute();
  if (second === undefined) return (state) => compute(first(state));
  if (third === undefined) return (state) => compute(first(state), second(state));
  return (state) => compute(...args.map((arg) => arg(state)));
}

/** A function that also looks into lists: `each(list, index)` evaluates an item in the scope of the call. */
export type Each = (list: ListValue, at: number) => Value;

export function overLists(
  least: number,
  most: number,
  compute: (each: Each, ...values: Value[]) => Value,
): FunctionDefinition {
  return {
    least,
    most,
    make: ({ args, above }) => {
      return (state) => {
        const values = args.map((arg) => arg(state));
        return compute((list, at) => item(state, list, at, above), ...values);
      };
    },
  };
}

/** Evaluates one item of a list in the current scope, as the library does: not in the ad that holds the list. */
export function item(state: EvalState, list: ListValue, at: number, above: number): Value {
  const expr = list.items[at];
  if (expr === undefined) return undefined;
  if (expr.kind === 'literal' && expr.code === undefined) {
    if (--state.steps < 0) throw FAILED;
    return expr.result;
  }
  return runItem(state, expr, list, above);
}

export function runItem(state: EvalState, expr: Expr, list: ListValue, above: number): Value {
  if (--state.steps < 0) throw FAILED;
  const { depth, lexical } = state;
  state.depth = depth - above;
  if (state.depth < 0) throw FAILED;
  state.lexical = list.scope;
  const value = run(state, expr);
  state.depth = depth;
  state.lexical = lexical;
  return value;
}

/** Evaluates what may fail: its failure is then the value ERROR, as in the few functions that do not pass it on. */
export function caught(state: EvalState, evaluate: () => Value): Value {
  const { current, root, lexical, depth, guest, guestOther, active } = state;
  const { length } = active;
  try {
    return evaluate();
  } catch (thrown) {
    if (!(thrown instanceof EvalFailed)) throw thrown;
    active.length = length;
    state.activeAds.length = length;
    Object.assign(state, { current, root, lexical, depth, guest, guestOther });
    return ERROR;
  }
}
