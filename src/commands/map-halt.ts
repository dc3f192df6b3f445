import { GryphusError } from '../errors.ts';
import { counted } from '../util/plain-text.ts';

/** `soon` starts no more tasks; `now` also stops those that run. */
export interface HaltRule {
  readonly when: 'now' | 'soon';
  readonly what: 'fail' | 'success' | 'done';
  readonly limit: number;
  readonly percent: boolean;
}

const OLD: Readonly<Record<string, string>> = {
  '0': 'never',
  '1': 'soon,fail=1',
  '2': 'now,fail=1',
  '-1': 'soon,success=1',
  '-2': 'now,success=1',
};
/** As in GNU parallel, a percentage means nothing for fewer. */
const FEW = 3;

/** GNU parallel's --halt; `undefined`: never. */
export function haltRule(given: string | undefined): HaltRule | undefined {
  if (given === undefined) return undefined;
  const text = OLD[given] ?? given.replace(/^\d+(\.\d+)?%$/, 'soon,fail=$&');
  if (text === 'never') return undefined;
  const [, when, what, number, sign] = /^(now|soon),(fail|success|done)=(\d+|\d+\.\d+(?=%))(%?)$/.exec(text) ?? [];
  const limit = Number(number);
  const percent = sign === '%';
  if (isWhen(when) && isWhat(what) && limit > 0 && (!percent || limit <= 100)) return { when, what, limit, percent };
  throw new GryphusError('usage', `--halt cannot be ${JSON.stringify(given)}.`, {
    suggestions: ['Say never, now,fail=1, soon,fail=3, now,success=1, soon,done=10, soon,fail=20% and so on.'],
  });
}

const isWhen = (word: string | undefined): word is HaltRule['when'] => word === 'now' || word === 'soon';
const isWhat = (word: string | undefined): word is HaltRule['what'] =>
  word === 'fail' || word === 'success' || word === 'done';

/** Counts the ends of tasks until they are enough. */
export class Halt {
  readonly #rule: HaltRule | undefined;
  readonly #total: number;
  readonly #counts = { fail: 0, success: 0, done: 0 };
  /** The status of the task that was one too many. */
  #last: number | undefined;

  /** `total`: of all tasks, for a percentage. */
  constructor(rule: HaltRule | undefined, total = 0) {
    this.#rule = rule;
    this.#total = total;
  }

  get halted(): boolean {
    return this.#last !== undefined;
  }

  /** The exit status of the map, if it was halted and has one other than the number of failed tasks. */
  get status(): number | undefined {
    if (this.#rule === undefined || this.#last === undefined) return undefined;
    const { what, percent, limit } = this.#rule;
    if (what === 'done') return undefined;
    if (percent) return Math.floor((100 * this.#counts.fail) / this.#total);
    if (what === 'success') return 0;
    return limit === 1 ? this.#last : undefined;
  }

  /** `code`: the exit status of the task; returns what to do if this end is the one too many. */
  take(code: number): { readonly when: HaltRule['when']; readonly why: string } | undefined {
    this.#counts.done++;
    this.#counts[code === 0 ? 'success' : 'fail']++;
    const rule = this.#rule;
    if (rule === undefined || this.#last !== undefined) return undefined;
    const count = this.#counts[rule.what];
    const reached = rule.percent ? count >= FEW && (100 * count) / this.#total >= rule.limit : count >= rule.limit;
    if (!reached) return undefined;
    this.#last = code;
    return { when: rule.when, why: `${counted(count, 'task')} ${SAYS[rule.what]}` };
  }
}

const SAYS = { fail: 'failed', success: 'succeeded', done: 'ended' } as const;
