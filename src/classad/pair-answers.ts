import type { ClassAd } from './ad.ts';
import type { CompareOp, Expr } from './expr.ts';
import { relation } from './operators.ts';
import type { Division, Population } from './population.ts';
import { Real, type Value } from './values.ts';

/** What an expression of the ads on one side says about the ads on the other, as a number. */
export interface PairAnswers {
  /** The number of evaluations that it may need. */
  readonly size: number;
  /** By the positions of the ads in their populations. */
  at(my: number, their: number): number;
}

/** How many answers are stored for one expression; with more, it is evaluated each time. */
const MAX_CELLS = 20_000_000;

/** An expression, evaluated once for each distinguishable pair of ads. */
export class PairTable implements PairAnswers {
  private readonly compute: (my: number, their: number) => number;
  private readonly mine: Division;
  private readonly theirs: Division;
  readonly size: number;
  /** NaN means not known yet. */
  private readonly cells: Float64Array | undefined;

  constructor(mine: Division, theirs: Division, compute: (my: number, their: number) => number) {
    this.mine = mine;
    this.theirs = theirs;
    this.compute = compute;
    this.size = mine.count * theirs.count;
    this.cells = this.size > MAX_CELLS ? undefined : new Float64Array(this.size).fill(Number.NaN);
  }

  at(my: number, their: number): number {
    if (this.cells === undefined) return this.compute(my, their);
    const cell = (this.mine.ids[my] ?? 0) * this.theirs.count + (this.theirs.ids[their] ?? 0);
    const known = this.cells[cell] ?? Number.NaN;
    if (!Number.isNaN(known)) return known;
    const value = this.compute(my, their);
    this.cells[cell] = value;
    return value;
  }
}

/**
 * Operators that return an error if an operand is one, so that an operand that failed when evaluated apart gives the
 * same.
 */
export type CompareSign = '<' | '<=' | '==' | '!=' | '>=' | '>';

export function isOrder(op: string): op is CompareSign {
  return op in TESTS;
}

const TESTS: Readonly<Record<CompareSign, (a: number, b: number) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '>=': (a, b) => a >= b,
  '>': (a, b) => a > b,
};

/**
 * `Memory >= TARGET.RequestMemory`: one operand depends only on one side, the other only on the other. Each operand is
 * evaluated once per distinguishable ad of its side, so that a pair costs one comparison of numbers.
 */
export class Comparison implements PairAnswers {
  private readonly op: CompareOp;
  private readonly test: (a: number, b: number) => boolean;
  private readonly mine: Operand;
  private readonly theirs: Operand;
  /** The operand of this side is on the left. */
  private readonly mineFirst: boolean;
  private readonly read: (value: Value) => number;
  readonly size: number;

  constructor(op: CompareSign, mine: Operand, theirs: Operand, mineFirst: boolean, read: (value: Value) => number) {
    this.op = op;
    this.test = TESTS[op];
    this.mine = mine;
    this.theirs = theirs;
    this.mineFirst = mineFirst;
    this.read = read;
    this.size = mine.size + theirs.size;
  }

  at(my: number, their: number): number {
    const a = this.mine.number(my);
    const b = this.theirs.number(their);
    // NaN: not both are plain numbers, so the operator decides.
    if (Number.isNaN(a) || Number.isNaN(b)) return this.decide(my, their);
    return (this.mineFirst ? this.test(a, b) : this.test(b, a)) ? 1 : 0;
  }

  private decide(my: number, their: number): number {
    const [a, b] = [this.mine.value(my), this.theirs.value(their)];
    return this.read(this.mineFirst ? relation(this.op, a, b) : relation(this.op, b, a));
  }
}

/** An expression of the ads of one population only, evaluated once for those that it cannot tell apart. */
export class Operand {
  private readonly division: Division;
  private readonly population: Population;
  private readonly evaluate: (expr: Expr, ad: ClassAd) => Value;
  private readonly expr: Expr;
  private readonly values: Value[];
  private readonly known: Uint8Array;
  private readonly numbers: Float64Array;

  constructor(expr: Expr, population: Population, division: Division, evaluate: (expr: Expr, ad: ClassAd) => Value) {
    this.expr = expr;
    this.population = population;
    this.division = division;
    this.evaluate = evaluate;
    this.values = Array.from({ length: division.count });
    this.known = new Uint8Array(division.count);
    this.numbers = new Float64Array(division.count);
  }

  get size(): number {
    return this.division.count;
  }

  value(at: number): Value {
    this.number(at);
    return this.values[this.division.ids[at] ?? 0];
  }

  /** NaN unless it is a number that floats compare as ClassAds do. */
  number(at: number): number {
    const id = this.division.ids[at] ?? 0;
    if (this.known[id] === 0) this.learn(id, at);
    return this.numbers[id] ?? Number.NaN;
  }

  private learn(id: number, at: number): void {
    const ad = this.population.ads[at];
    const value = ad === undefined ? undefined : this.evaluate(this.expr, ad);
    this.values[id] = value;
    this.known[id] = 1;
    this.numbers[id] = typeof value === 'number' ? value : value instanceof Real ? value.value : Number.NaN;
  }
}
