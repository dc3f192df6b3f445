import { ClassAd } from './ad.ts';
import { attrKey } from './bytes.ts';
import { run } from './compile.ts';
import type { Expr } from './expr.ts';
import { toInt32 } from './int64.ts';
import { enterScope } from './scopes.ts';
import { type Code, EvalFailed, type EvalState } from './state.ts';
import { ERROR, isInt, ListValue, type Value } from './values.ts';

/** `list[integer]` and `record["name"]`. */
export function subscriptCode(left: Code, right: Code, above: number): Code {
  return (state) => {
    const base = left(state);
    const index = right(state);
    if (base === ERROR || index === ERROR) return ERROR;
    if (base === undefined || index === undefined) return undefined;
    const depthLeft = state.depth;
    if (base instanceof ListValue && isInt(index)) {
      const item = base.items[toInt32(index)];
      if (item === undefined || depthLeft - above <= 0) return ERROR;
      return runAt(state, item, base.scope, depthLeft - above - 1);
    }
    if (base instanceof ClassAd && typeof index === 'string') return attributeOf(state, base, index, depthLeft - above);
    return ERROR;
  };
}

/** Evaluates an expression in another ad, turning a failure into an error value there. */
function runAt(state: EvalState, expr: Expr, scope: ClassAd | undefined, depth: number): Value {
  const { current, lexical, depth: before } = state;
  const { length } = state.active;
  state.current = scope;
  state.lexical = scope;
  state.depth = depth;
  let value: Value;
  try {
    value = run(state, expr);
  } catch (thrown) {
    if (!(thrown instanceof EvalFailed)) throw thrown;
    state.active.length = length;
    state.activeAds.length = length;
    value = ERROR;
  }
  state.current = current;
  state.lexical = lexical;
  state.depth = before;
  return value;
}

/** A subscript with a name returns a copy: a record or list obtained this way is no longer inside any ad. */
function attributeOf(state: EvalState, ad: ClassAd, name: string, depth: number): Value {
  const expr = ad.find(attrKey(name));
  if (expr === undefined) return undefined;
  const { root, current } = state;
  if (depth <= 0 || --state.steps < 0) return ERROR;
  enterScope(state, ad);
  const value = runAt(state, expr, ad, depth - 1);
  state.root = root;
  state.current = current;
  return detached(value);
}

function detached(value: Value): Value {
  if (value instanceof ListValue && !value.shared) return new ListValue(value.items, undefined, true);
  if (!(value instanceof ClassAd) || value.shared) return value;
  const copy = value.copy();
  copy.shared = true;
  return copy;
}
