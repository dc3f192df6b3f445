import { ClassAd } from './ad.ts';
import { attrKey } from './bytes.ts';
import { compile, run } from './compile.ts';
import { type AttrRef, type Expr, literal } from './expr.ts';
import { enterScope, lookup, otherSide } from './scopes.ts';
import { type Code, type EvalState, FAILED } from './state.ts';
import { ERROR, ListValue, type Value } from './values.ts';

/** What a reference leads to: an expression in an ad, an ad itself, or nothing. */
export type Target = { readonly expr: Expr | undefined; readonly ad: ClassAd } | undefined;

export function compileReference(expr: AttrRef, above: number, checked: boolean): Code {
  const key = attrKey(expr.name);
  if (expr.base !== undefined) return selection(expr.base, key, expr.name, above, checked);
  if (expr.absolute) return (state) => absolute(state, key, above);
  return (state) => {
    const start = state.current;
    if (start === undefined) return undefined;
    const found = start.find(key);
    if (found !== undefined) return enter(state, found, start, above);
    return resolveBare(state, start, key, above);
  };
}

function resolveBare(state: EvalState, start: ClassAd, key: string, above: number): Value {
  const target = findBare(state, start, key);
  return follow(state, target, start, above);
}

/** Looks up a bare name here, in the ads around and (in old evaluation) on the other side of the match. */
export function findBare(state: EvalState, start: ClassAd, key: string): Target {
  const here = lookup(state, start, key);
  if (here === null) throw FAILED;
  if (here !== undefined) return here;
  const other = otherSide(state, start);
  if (other === undefined) return undefined;
  const there = lookup(state, other, key);
  if (there === null) throw FAILED;
  return there;
}

function absolute(state: EvalState, key: string, above: number): Value {
  const { root, current } = state;
  if (root === undefined) throw FAILED;
  const target = lookup(state, root, key);
  if (target === null) throw FAILED;
  return follow(state, target, current, above);
}

/** Evaluates what was found and restores the scope to `back`. */
function follow(state: EvalState, target: Target, back: ClassAd | undefined, above: number): Value {
  if (target === undefined) {
    state.current = back;
    return undefined;
  }
  if (target.expr !== undefined) {
    state.current = back;
    return enter(state, target.expr, target.ad, above);
  }
  state.current = back;
  if (state.depth - above <= 0) throw FAILED;
  return target.ad;
}

/**
 * Evaluates the expression of an attribute in its ad. Kept small to be inlined, since most attributes are constants.
 */
function enter(state: EvalState, expr: Expr, ad: ClassAd, above: number): Value {
  if (state.depth <= above || --state.steps < 0) throw FAILED;
  if (expr.kind !== 'literal') return resolve(state, expr, ad, above);
  // Constants need no scope; nor do the sides of a match, which have code.
  if (expr.code !== undefined) return expr.code(state);
  const { result } = expr;
  if (typeof result === 'string' && result.length > 255) state.charge(result);
  return result;
}

/** A reference that is already being resolved is undefined. */
function resolve(state: EvalState, expr: Expr, ad: ClassAd, above: number): Value {
  const { depth, current, lexical, active, activeAds } = state;
  for (let at = active.length - 1; at >= 0; at -= 1) if (active[at] === expr && activeAds[at] === ad) return undefined;
  active.push(expr);
  activeAds.push(ad);
  state.depth = depth - above - 1;
  state.current = ad;
  state.lexical = ad;
  const value = run(state, expr);
  state.depth = depth;
  state.current = current;
  state.lexical = lexical;
  active.pop();
  activeAds.pop();
  if (typeof value === 'string' ? value.length > 255 : value instanceof ListValue) state.charge(value);
  return value;
}

/** `base.name`. */
function selection(base: Expr, key: string, name: string, above: number, checked: boolean): Code {
  if (above > 401) return () => ERROR;
  const inner = compile(base, above + 1, checked);
  const side = sideOf(base);
  const whole = (state: EvalState): Value => {
    const ad = inner(state);
    if (ad instanceof ClassAd) {
      const found = ad.find(key);
      if (found !== undefined) return enter(state, found, ad, above);
      const back = state.current;
      const target = lookup(state, ad, key);
      if (target === null) throw FAILED;
      return follow(state, target, back, above);
    }
    if (ad === undefined) return undefined;
    return ad instanceof ListValue ? project(state, ad, key, name, above) : ERROR;
  };
  const code = side === 'none' ? whole : besideWalk(side, key, above, whole);
  return checked ? (state) => (state.depth <= above ? ERROR : code(state)) : code;
}

/** A fast path for MY and TARGET: if the ad has the attribute, skips the walk through the ads around it. */
function besideWalk(side: 'mine' | 'theirs', key: string, above: number, whole: Code): Code {
  const mine = side === 'mine';
  return (state) => {
    const { current, left, right } = state;
    if (left === undefined || right === undefined || left === right) return whole(state);
    if (current !== left && current !== right) return whole(state);
    if (current.namesSides) return whole(state);
    const ad = mine === (current === left) ? left : right;
    const found = ad.find(key);
    return found === undefined ? whole(state) : enter(state, found, ad, above);
  };
}

type Side = 'mine' | 'theirs' | 'none';

function sideOf(base: Expr): Side {
  if (base.kind !== 'ref' || base.base !== undefined || base.absolute) return 'none';
  const name = attrKey(base.name);
  if (name === 'target' || name === 'other') return 'theirs';
  return name === 'my' ? 'mine' : 'none';
}

/** `list.name`: the list of `item.name` for each item, evaluated eagerly. */
function project(state: EvalState, list: ListValue, key: string, name: string, above: number): Value {
  const { depth, root, current, lexical } = state;
  const depthLeft = depth - above;
  const items: Expr[] = [];
  for (const item of list.items) {
    if (--state.steps < 0) throw FAILED;
    enterScope(state, current);
    state.lexical = list.scope;
    state.depth = depthLeft - 1;
    if (depthLeft - 1 < 0) throw FAILED;
    const ad = run(state, item);
    state.depth = depthLeft;
    items.push(literal(pick(state, ad, key, name)));
  }
  state.depth = depth;
  state.root = root;
  state.current = current;
  state.lexical = lexical;
  if (depthLeft <= 0) throw FAILED;
  return new ListValue(items, undefined, false);
}

function pick(state: EvalState, ad: Value, key: string, name: string): Value {
  if (ad === undefined) return undefined;
  if (ad instanceof ListValue) return project(state, ad, key, name, 0);
  if (!(ad instanceof ClassAd)) return ERROR;
  const back = state.current;
  const target = lookup(state, ad, key);
  if (target === null) throw FAILED;
  const value = follow(state, target, back, 0);
  // The new list is outside any ad, and so are the records and lists in it.
  if (value instanceof ListValue) return new ListValue(value.items, undefined, value.shared);
  return value instanceof ClassAd ? value.copy() : value;
}

/** Finds what a reference leads to without evaluating it; the scope stays where the search ended. */
export function findTarget(state: EvalState, expr: AttrRef): Target {
  const key = attrKey(expr.name);
  if (expr.base === undefined) {
    const start = expr.absolute ? state.root : state.current;
    if (start === undefined) return undefined;
    return expr.absolute ? (lookup(state, start, key) ?? undefined) : findBare(state, start, key);
  }
  const base = run(state, expr.base);
  if (base instanceof ClassAd) return lookup(state, base, key) ?? undefined;
  if (!(base instanceof ListValue) || state.current === undefined) return undefined;
  return { expr: literal(project(state, base, key, expr.name, 0)), ad: state.current };
}
