import { ClassAd } from './ad.ts';
import { attrRef, type Expr, literal } from './expr.ts';
import type { EvalState } from './state.ts';
import type { Value } from './values.ts';

/*
 * The ads around the two sides of a match, built as in the library: [LEFT; RIGHT; …] at the top and, for each side, a
 * context that names the other (TARGET, other) and itself (MY, ad). LEFT and RIGHT evaluate to the sides of the current
 * state.
 */
export const LEFT: Expr = { ...literal(undefined), code: (state) => state.left };
export const RIGHT: Expr = { ...literal(undefined), code: (state) => state.right };

function requirementsOf(side: string): Expr {
  return attrRef('requirements', attrRef(side));
}

export const MATCH_AD = new ClassAd()
  .setExpr('symmetricMatch', {
    kind: 'binary',
    op: '&&',
    left: requirementsOf('RIGHT'),
    right: requirementsOf('LEFT'),
    height: 2,
    code: undefined,
  })
  .setExpr('leftMatchesRight', requirementsOf('RIGHT'))
  .setExpr('rightMatchesLeft', requirementsOf('LEFT'))
  .setExpr('leftRankValue', attrRef('rank', attrRef('LEFT')))
  .setExpr('rightRankValue', attrRef('rank', attrRef('RIGHT')))
  .setExpr('LEFT', LEFT)
  .setExpr('RIGHT', RIGHT);

function context(mine: string, others: string): ClassAd {
  const ad = new ClassAd();
  for (const name of ['other', 'target']) ad.setExpr(name, attrRef(others, undefined, true));
  for (const name of ['my', 'ad']) ad.setExpr(name, attrRef(mine, undefined, true));
  ad.parent = MATCH_AD;
  return ad;
}

const LEFT_CONTEXT = context('LEFT', 'RIGHT');
const RIGHT_CONTEXT = context('RIGHT', 'LEFT');
MATCH_AD.setExpr('lCtx', literal(LEFT_CONTEXT)).setExpr('rCtx', literal(RIGHT_CONTEXT));

/** Prepares a value for display: the ad around a match (`root`) is shown with its two sides. */
export function withSides(state: EvalState, value: Value): Value {
  if (value !== MATCH_AD) return value;
  const shown = new ClassAd();
  for (const [name, expr] of MATCH_AD.entries()) shown.setExpr(name, expr);
  return shown.setExpr('LEFT', literal(state.left)).setExpr('RIGHT', literal(state.right));
}

export function parentOf(state: EvalState, ad: ClassAd): ClassAd | undefined {
  if (ad === state.right) return RIGHT_CONTEXT;
  if (ad === state.left) return LEFT_CONTEXT;
  return ad.parent;
}

/** How many ads may enclose one another; any more means that one contains itself. */
const MAX_AROUND = 1000;

/** Starts an evaluation in `ad`: names are looked up there, then in the ads around it, up to the outermost. */
export function enterScope(state: EvalState, ad: ClassAd | undefined): void {
  state.current = ad;
  if (ad !== undefined && (ad === state.left || ad === state.right)) {
    state.root = MATCH_AD;
    return;
  }
  state.root = ad;
  for (let steps = 0; state.root !== undefined; steps += 1) {
    const up = parentOf(state, state.root);
    if (up === undefined) return;
    state.root = steps < MAX_AROUND ? up : undefined;
  }
}

/** The side on which to continue a failed lookup: old evaluation also looks for a bare name in TARGET. */
export function otherSide(state: EvalState, ad: ClassAd): ClassAd | undefined {
  if (!state.old) return undefined;
  if (ad === state.guest) return state.guestOther;
  if (ad === state.left) return state.right;
  return ad === state.right ? state.left : undefined;
}

/** What a name stands for: an expression and the ad that contains it, or an ad itself (MY, parent, root). */
export interface FoundName {
  readonly expr: Expr | undefined;
  readonly ad: ClassAd;
}

/**
 * Looks up a folded name in `start` and the ads around it. `undefined`: not found. `null`: there is no outermost ad to
 * start from, which makes the evaluation fail.
 */
export function lookup(state: EvalState, start: ClassAd, key: string): FoundName | undefined | null {
  let ad: ClassAd | undefined = start;
  while (ad !== undefined) {
    state.current = ad;
    const expr = ad.find(key);
    if (expr !== undefined) return { expr, ad };
    const up: ClassAd | undefined = state.root === ad ? undefined : parentOf(state, ad);
    switch (key) {
      case 'toplevel':
      case 'root':
        return state.root === undefined ? null : { expr: undefined, ad: state.root };
      case 'self':
        return { expr: undefined, ad };
      case 'my':
        if (state.old) return { expr: undefined, ad };
        break;
      case 'parent':
        return up === undefined ? undefined : { expr: undefined, ad: up };
      case 'currenttime':
        if (state.old) return { expr: CURRENT_TIME, ad };
        break;
    }
    ad = up;
    if (ad === start) return undefined;
  }
  return undefined;
}

const CURRENT_TIME: Expr = { ...literal(undefined), code: (state) => state.now() };
