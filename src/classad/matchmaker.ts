import type { ClassAd } from './ad.ts';
import { run } from './compile.ts';
import type { Expr } from './expr.ts';
import { MATCH_AD } from './scopes.ts';
import { EvalFailed, type EvalOptions, EvalState, MAX_DEPTH } from './state.ts';
import { asCondition, ERROR, isNumeric, toDouble, type Value } from './values.ts';

/** What a matchmaker may spend on one expression: far more than any policy needs. */
const STEPS = 1_000_000;

/** Evaluates expressions of two ads that face each other, many pairs with one state: the inner loop of negotiation. */
export class Matchmaker {
  private readonly state: EvalState;

  constructor(options: Omit<EvalOptions, 'target'> = {}) {
    this.state = new EvalState({ ...options, now: options.now ?? Math.floor(Date.now() / 1000) });
  }

  /** An expression of `my` with `target` on the other side; what fails is ERROR. */
  evaluate(expr: Expr, my: ClassAd, target: ClassAd): Value {
    const { state } = this;
    state.left = my;
    state.right = target;
    state.depth = MAX_DEPTH;
    state.steps = STEPS;
    if (state.active.length > 0) {
      state.active.length = 0;
      state.activeAds.length = 0;
    }
    // As enterScope does for a side of a match.
    state.current = my;
    state.root = MATCH_AD;
    state.lexical = my;
    try {
      return run(state, expr);
    } catch (thrown) {
      if (thrown instanceof EvalFailed || thrown instanceof RangeError) return ERROR;
      throw thrown;
    }
  }

  /** `my`'s Requirements are true of `target`. An ad without any accepts nobody. */
  accepts(my: ClassAd, target: ClassAd): boolean {
    const requirements = my.find('requirements');
    return requirements !== undefined && asCondition(this.evaluate(requirements, my, target)) === true;
  }

  matches(left: ClassAd, right: ClassAd): boolean {
    return this.accepts(right, left) && this.accepts(left, right);
  }

  /** `my`'s Rank of `target`; 0 when there is none or it is no number. */
  rank(my: ClassAd, target: ClassAd): number {
    const rank = my.find('rank');
    const value = rank === undefined ? 0 : this.evaluate(rank, my, target);
    return isNumeric(value) && !Number.isNaN(toDouble(value)) ? toDouble(value) : 0;
  }
}
