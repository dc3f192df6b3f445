import { ClassAd } from './ad.ts';
import { attrKey, compareTextFolded } from './bytes.ts';
import { run } from './compile.ts';
import type { AttrRef, Expr } from './expr.ts';
import { printExpr } from './printer.ts';
import { lookup } from './scopes.ts';
import type { EvalState } from './state.ts';

/** The direct parts of an expression. */
export function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'literal':
      return [];
    case 'ref':
      return expr.base === undefined ? [] : [expr.base];
    case 'unary':
      return [expr.operand];
    case 'binary':
      return [expr.left, expr.right];
    case 'ternary':
      return [expr.test, expr.yes, expr.no];
    case 'call':
      return expr.args;
    case 'list':
      return expr.items;
    case 'record':
      return expr.attrs.map(([, value]) => value);
  }
}

/**
 * The names in an expression that neither `ad` nor the ads around it define, as full names (`TARGET.Memory`), sorted.
 * `undefined` if the library gives up: a loop, or a selection from something that is not a record.
 */
export function externalReferences(state: EvalState, expr: Expr, ad: ClassAd): string[] | undefined {
  const names = new Map<string, string>();
  state.current = ad;
  const complete = collect(state, expr, names, state.depth);
  if (!complete) return undefined;
  return [...names.values()].sort(compareTextFolded);
}

function collect(state: EvalState, expr: Expr, names: Map<string, string>, depthLeft: number): boolean {
  if (depthLeft <= 0 || --state.steps < 0) return false;
  if (expr.kind !== 'ref') return partsOf(expr).every((part) => collect(state, part, names, depthLeft - 1));
  return collectReference(state, expr, names, depthLeft);
}

function collectReference(state: EvalState, expr: AttrRef, names: Map<string, string>, depthLeft: number): boolean {
  const add = (name: string): true => {
    if (!names.has(attrKey(name))) names.set(attrKey(name), name);
    return true;
  };
  const { current } = state;
  let start = expr.absolute ? state.root : current;
  if (expr.base !== undefined) {
    const base = run(state, expr.base);
    if (base === undefined) return add(`${printExpr(expr.base, 'new')}.${expr.name}`);
    if (!(base instanceof ClassAd)) return false;
    start = base;
  }
  if (start === undefined) return false;
  const found = lookup(state, start, attrKey(expr.name));
  if (found === null) return false;
  if (found === undefined) add(expr.name);
  const inner = found?.expr;
  const complete = inner === undefined ? true : collect(state, inner, names, depthLeft - 1);
  state.current = current;
  return complete;
}

/** The attributes that an expression depends on. */
export interface Attributes {
  /** Those of its own ad: named with MY, or found there. */
  readonly my: ReadonlySet<string>;
  /** Those of the other ad: named with TARGET, or not found in its own. */
  readonly target: ReadonlySet<string>;
  /** Whether it can look at more than it names: eval() of a text, or an ad used as a whole. */
  readonly dynamic: boolean;
}

const LOOKING_AROUND: ReadonlySet<string> = new Set(['eval', 'unparse', 'unresolved']);
const WHOLE_ADS: ReadonlySet<string> = new Set([
  'my',
  'target',
  'other',
  'self',
  'parent',
  'root',
  'toplevel',
  'ad',
  'left',
  'right',
  'lctx',
  'rctx',
]);

/**
 * The attributes (in lower case) that an expression of `ad` can depend on, directly or through attributes that it
 * names. Without an ad, names without MY or TARGET count for both sides, unless `owned` says that all ads of this side
 * have them or none has.
 */
export function attributesOf(expr: Expr, ad?: ClassAd, owned?: (name: string) => 'all' | 'none' | 'some'): Attributes {
  const my = new Set<string>();
  const target = new Set<string>();
  let dynamic = false;
  const open: Expr[] = [expr];
  const mine = (name: string): void => {
    const known = my.has(name);
    my.add(name);
    const inner = known ? undefined : ad?.find(name);
    if (inner !== undefined) open.push(inner);
  };
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.kind !== 'ref') {
      if (next.kind === 'call' && LOOKING_AROUND.has(attrKey(next.name))) dynamic = true;
      open.push(...partsOf(next));
      continue;
    }
    const name = attrKey(next.name);
    const side = next.base?.kind === 'ref' && next.base.base === undefined ? attrKey(next.base.name) : undefined;
    if (side === 'target' || side === 'other') target.add(name);
    else if (side === 'my' || side === 'self') mine(name);
    else if (next.base !== undefined) open.push(next.base);
    else {
      if (WHOLE_ADS.has(name)) dynamic = true;
      const whose = owned?.(name) ?? (ad?.find(name) === undefined ? 'some' : 'all');
      if (whose !== 'none') mine(name);
      if (whose !== 'all') target.add(name);
    }
  }
  return { my, target, dynamic };
}
