import type { ClassAd } from './ad.ts';
import { attrKey } from './bytes.ts';
import { run } from './compile.ts';
import { attrRef, type Expr } from './expr.ts';
import { enterScope, MATCH_AD, withSides } from './scopes.ts';
import { EvalFailed, type EvalOptions, EvalState } from './state.ts';
import { asCondition, ERROR, type Value } from './values.ts';

export interface Scope extends EvalOptions {
  /** The ad that contains the expression: MY. */
  readonly my?: ClassAd | undefined;
}

function open(my: ClassAd | undefined, options: EvalOptions): EvalState {
  const state = new EvalState(options);
  if (my !== undefined && options.target !== undefined && options.target !== my) {
    state.left = my;
    state.right = options.target;
  }
  enterScope(state, my);
  state.lexical = my;
  return state;
}

/** Returns a value, or FAILED if HTCondor's evaluation call itself would fail (its tools print nothing then). */
function attempt(state: EvalState, expr: Expr): Value | EvalFailed {
  try {
    return withSides(state, run(state, expr));
  } catch (thrown) {
    if (thrown instanceof EvalFailed) return thrown;
    // Calls are nested more deeply than this process's stack allows.
    if (thrown instanceof RangeError) return new EvalFailed();
    throw thrown;
  }
}

/** Evaluates an expression. Never throws: an evaluation that fails (too deep, too long) returns an EvalFailed. */
export function tryEvaluate(expr: Expr, scope: Scope = {}): Value | EvalFailed {
  return attempt(open(scope.my, scope), expr);
}

/** Evaluates an expression. Never throws: a failure gives ERROR. */
export function evaluate(expr: Expr, scope: Scope = {}): Value {
  const value = tryEvaluate(expr, scope);
  return value instanceof EvalFailed ? ERROR : value;
}

/** The value of an attribute; undefined if there is none. */
export function evaluateAttr(ad: ClassAd, name: string, options: EvalOptions = {}): Value {
  const expr = ad.find(attrKey(name));
  return expr === undefined ? undefined : evaluate(expr, { ...options, my: ad });
}

/** An attribute's value as a condition (numbers count); undefined if it cannot be one. */
export function evalBool(ad: ClassAd, name: string, options?: EvalOptions): boolean | undefined {
  return asCondition(evaluateAttr(ad, name, options));
}

/** An integer attribute's value; undefined for any other type and for integers beyond 2^53. */
export function evalInt(ad: ClassAd, name: string, options?: EvalOptions): number | undefined {
  const value = evaluateAttr(ad, name, options);
  return typeof value === 'number' ? value : undefined;
}

/** A string attribute's value; undefined for any other type. */
export function evalString(ad: ClassAd, name: string, options?: EvalOptions): string | undefined {
  const value = evaluateAttr(ad, name, options);
  return typeof value === 'string' ? value : undefined;
}

const MATCHES = new Map(
  ['symmetricMatch', 'leftMatchesRight', 'rightMatchesLeft'].map((name) => [name, attrRef(name)] as const),
);

function matches(name: string, left: ClassAd, right: ClassAd, options: EvalOptions): boolean {
  const expr = MATCHES.get(name);
  if (expr === undefined) return false;
  const state = new EvalState(options);
  state.left = left;
  state.right = right;
  enterScope(state, MATCH_AD);
  state.lexical = MATCH_AD;
  const value = attempt(state, expr);
  return !(value instanceof EvalFailed) && asCondition(value) === true;
}

/** Whether both Requirements are true, each with the other ad as TARGET. */
export function symmetricMatch(left: ClassAd, right: ClassAd, options: EvalOptions = {}): boolean {
  return matches('symmetricMatch', left, right, options);
}

/** Whether the left ad satisfies the right one's Requirements. */
export function leftMatchesRight(left: ClassAd, right: ClassAd, options: EvalOptions = {}): boolean {
  return matches('leftMatchesRight', left, right, options);
}

/** Whether the right ad satisfies the left one's Requirements. */
export function rightMatchesLeft(left: ClassAd, right: ClassAd, options: EvalOptions = {}): boolean {
  return matches('rightMatchesLeft', left, right, options);
}
