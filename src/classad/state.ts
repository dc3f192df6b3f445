import type { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';
import { ListValue, type Value } from './values.ts';

/** A compiled expression. */
export type Code = (state: EvalState) => Value;

/** Thrown through an evaluation that cannot go on (too deep, too long): the library's "evaluation failed". */
export class EvalFailed {
  readonly type = 'eval-failed';
}

export const FAILED = new EvalFailed();

/** HTCondor's limit on nested evaluations. */
export const MAX_DEPTH = 400;
/** References and list items that one evaluation may look at, over all. The library counts nodes, up to 10,000,000. */
const MAX_STEPS = 4_000_000;
/** Characters in a string that a function makes; the library has no limit but memory. */
export const MAX_STRING = 16 * 1024 * 1024;

/** What an evaluation takes from outside. */
export interface EvalOptions {
  /** `old` (the default): as HTCondor's tools and daemons evaluate; `new`: the library's strict mode. */
  readonly mode?: 'old' | 'new' | undefined;
  /** The other side of a match: TARGET. */
  readonly target?: ClassAd | undefined;
  /** time(): seconds since 1970. Default: the clock. */
  readonly now?: number | undefined;
  /** Source of random(), in [0, 1). Default: Math.random. */
  readonly random?: (() => number) | undefined;
  /** userMap(): the comma-separated result of a map for a user, if any. */
  readonly userMap?: ((map: string, user: string) => string | undefined) | undefined;
}

/** The moving parts of one evaluation. */
export class EvalState {
  /** The ad in which names are looked up now. */
  current: ClassAd | undefined;
  /** The ad in which the expression that runs now was written: the parent of records and lists in it. */
  lexical: ClassAd | undefined;
  /** Where lookups in enclosing ads end, and what `.name` begins with. */
  root: ClassAd | undefined;
  left: ClassAd | undefined;
  right: ClassAd | undefined;
  /** A nested ad that for now looks on the other side too (evalInEachContext). */
  guest: ClassAd | undefined;
  guestOther: ClassAd | undefined;
  depth = MAX_DEPTH;
  steps = MAX_STEPS;
  /** Expressions of the references being resolved, each with its ad: a repetition is a loop. */
  readonly active: Expr[] = [];
  readonly activeAds: ClassAd[] = [];
  readonly options: EvalOptions;
  readonly old: boolean;

  constructor(options: EvalOptions) {
    this.options = options;
    this.old = options.mode !== 'new';
  }

  /** Takes the size of a value off the steps: what is done with a long string costs more than with a short one. */
  charge(value: Value): void {
    if (typeof value === 'string') {
      if (value.length > 255) this.steps -= value.length >> 6;
    } else if (value instanceof ListValue) this.steps -= value.items.length >> 3;
    if (this.steps < 0) throw FAILED;
  }

  now(): number {
    return this.options.now ?? Math.floor(Date.now() / 1000);
  }

  random(): number {
    return (this.options.random ?? Math.random)();
  }
}
