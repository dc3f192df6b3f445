import type { JobView } from '../../index.ts';
import { OUTCOME_ATTRIBUTES, outcomeOf, outcomeText, wentWell } from '../../job/outcome.ts';

/** Counts the outcomes of jobs. */
export class Tally {
  static readonly attributes = OUTCOME_ATTRIBUTES;
  readonly #others = new Map<string, number>();
  #seen = 0;
  #well = 0;

  add({ state, ad }: Pick<JobView, 'state' | 'ad'>): void {
    this.#seen += 1;
    const outcome = outcomeOf(state, { get: (name) => ad[name] });
    const message = outcomeText(outcome);
    if (wentWell(outcome)) this.#well += 1;
    else this.#others.set(message, (this.#others.get(message) ?? 0) + 1);
  }

  get well(): number {
    return this.#well;
  }

  /**
   * Summarizes the jobs of `total` that did not end well: `3 exit status 1, 2 held`. `notMade`: jobs not materialized
   * yet.
   */
  words(total: number, notMade: number): string {
    const gone = total - this.#seen - notMade;
    const others = [...this.#others].sort(([, a], [, b]) => b - a).map(([message, n]) => `${n} ${message}`);
    if (notMade > 0) others.push(`${notMade} not made`);
    if (gone > 0) others.push(`${gone} neither in the queue nor in the history`);
    return others.join(', ');
  }
}
