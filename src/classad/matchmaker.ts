import type { ClassAd } from './ad.ts';
import { run } from './compile.ts';
import type { Expr } from './expr.ts';
import { MATCH_AD } from './scopes.ts';
import { EvalFailed, type EvalOptions, EvalState, MAX_DEPTH } from './state.ts';
import { asCondition, ERROR, isNumeric, toDouble, type Value } from './values.ts';

/** The step budget of one expression: far more than any policy needs. */
const STEPS = 1_000_000;

/** Evaluates expressions of pairs of ads with one reused state: the inner loop of negotiation. */
export class Matchmaker {
  private readonly state: EvalState;

  constructor(options: Omit<EvalOptions, 'target'> = {}) {
    this.state = new EvalState({ ...options, now: options.now ?? Math.floor(Date.now() / 1000) });
  }

  /** Evaluates an expression of `my` with `target` on the other side; a failure gives ERROR. */
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
    // Equivalent to enterScope for a side of a match.
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

  /** Whether `my`'s Requirements are true of `target`. An ad without any accepts nobody. */
  accepts(my: ClassAd, target: ClassAd): boolean {
    const requirements = my.find('requirements');
    return requirements !== undefined && asCondition(this.evaluate(requirements, my, target)) === true;
  }

  matches(left: ClassAd, right: ClassAd): boolean {
    return this.accepts(right, left) && this.accepts(left, right);
  }

  /** `my`'s Rank of `target`; 0 if there is none or it is not a number. */
  rank(my: ClassAd, target: ClassAd): number {
    const rank = my.find('rank');
    const value = rank === undefined ? 0 : this.evaluate(rank, my, target);
    return isNumeric(value) && !Number.isNaN(toDouble(value)) ? toDouble(value) : 0;
  }
}
