import { run } from '../compile.ts';
import type { Expr } from '../expr.ts';
import { type Code, EvalFailed, type EvalState, FAILED } from '../state.ts';
import { ERROR, type ListValue, type Value } from '../values.ts';

export interface CallSite {
  readonly name: string;
  readonly args: readonly Code[];
  readonly exprs: readonly Expr[];
  /** The number of operators around the arguments within the expression that contains the call. */
  readonly above: number;
}

/** A builtin function. A call with fewer than `least` or more than `most` arguments is an error. */
export interface FunctionDefinition {
  readonly least: number;
  readonly most: number;
  /** How many levels deeper than the call its arguments are (1 for strcat and join). */
  readonly level?: number;
  /** A wrong number of arguments makes the evaluation fail rather than give an error value. */
  readonly failsOnCount?: boolean;
  /** Depends only on its arguments and looks into no list or record. */
  readonly pure?: boolean;
  make(site: CallSite): Code;
}

export type FunctionTable = readonly (readonly [name: string, definition: FunctionDefinition])[];

/** A function that depends only on the values of its arguments. */
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

/** Evaluates item `at` of a list in the scope of the call. */
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

/** Evaluates an item of a list in the current scope and not in the ad that holds the list, as the library does. */
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

/** Turns a failed evaluation into the value ERROR, as the few functions do that do not pass a failure on. */
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
