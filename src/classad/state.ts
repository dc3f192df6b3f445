import type { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';
import { ListValue, type Value } from './values.ts';

/** A compiled expression. */
export type Code = (state: EvalState) => Value;

/** Thrown through an evaluation that cannot continue (too deep, too long): the library's "evaluation failed". */
export class EvalFailed {
  readonly type = 'eval-failed';
}

export const FAILED = new EvalFailed();

/** HTCondor's limit on nested evaluations. */
export const MAX_DEPTH = 400;
/**
 * How many references and list items one evaluation may look at in total. The library counts nodes, up to 10,000,000.
 */
const MAX_STEPS = 4_000_000;
/** The longest string that a function may make, in characters; the library's only limit is memory. */
export const MAX_STRING = 16 * 1024 * 1024;

/** The external inputs of an evaluation. */
export interface EvalOptions {
  /** `old` (the default): as HTCondor's tools and daemons evaluate; `new`: the library's strict mode. */
  readonly mode?: 'old' | 'new' | undefined;
  /** The other side of a match: TARGET. */
  readonly target?: ClassAd | undefined;
  /** For time(): seconds since 1970. Default: the clock. */
  readonly now?: number | undefined;
  /** The source of random(), in [0, 1). Default: Math.random. */
  readonly random?: (() => number) | undefined;
  /** For userMap(): the comma-separated result of a map for a user, if any. */
  readonly userMap?: ((map: string, user: string) => string | undefined) | undefined;
  /** How many references and list items it may look at in total; default: 4,000,000. */
  readonly steps?: number | undefined;
}

/** The mutable state of one evaluation. */
export class EvalState {
  /** The ad in which names are currently looked up. */
  current: ClassAd | undefined;
  /** The ad that contains the current expression: the parent of the records and lists written in it. */
  lexical: ClassAd | undefined;
  /** Where lookups in enclosing ads end, and where `.name` starts. */
  root: ClassAd | undefined;
  left: ClassAd | undefined;
  right: ClassAd | undefined;
  /** A nested ad that temporarily sees the other side too (evalInEachContext). */
  guest: ClassAd | undefined;
  guestOther: ClassAd | undefined;
  depth = MAX_DEPTH;
  steps: number;
  /** The references being resolved, each as an expression and its ad; a repetition is a loop. */
  readonly active: Expr[] = [];
  readonly activeAds: ClassAd[] = [];
  readonly options: EvalOptions;
  readonly old: boolean;

  constructor(options: EvalOptions) {
    this.options = options;
    this.old = options.mode !== 'new';
    this.steps = options.steps ?? MAX_STEPS;
  }

  /** Charges for the size of a value, because work on a long string costs more than on a short one. */
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
