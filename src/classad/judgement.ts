import { clausesOf } from './clauses.ts';
import type { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';
import type { Matchmaker } from './matchmaker.ts';
import { type Division, type Population, reach } from './population.ts';
import { printExpr } from './printer.ts';
import { attributesOf } from './references.ts';
import { asCondition, isNumeric, toDouble, type Value } from './values.ts';

/** Answers kept for one expression, at most; beyond that it is evaluated each time. */
const MAX_CELLS = 20_000_000;

/** One expression of ads of one side about ads of the other, evaluated once for each difference that it can see. */
class PairTable {
  private readonly compute: (my: number, their: number) => number;
  private readonly mine: Division;
  private readonly theirs: Division;
  /** Different answers that there may be. */
  readonly size: number;
  /** NaN: not known yet. */
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
 * What the ads of one side think of those of the other: Requirements, taken apart at `&&`, and Rank. `Memory >= 2048` is
 * evaluated for each amount of memory that there is, not for each slot.
 */
export class Judgement {
  private readonly mine: Population;
  private readonly theirs: Population;
  private readonly matchmaker: Matchmaker;
  private readonly conditions: (readonly PairTable[] | undefined)[];
  private readonly ranks: (PairTable | number)[];
  private readonly tables = new Map<string, PairTable>();
  private readonly texts = new WeakMap<Expr, string>();

  constructor(mine: Population, theirs: Population, matchmaker: Matchmaker) {
    this.mine = mine;
    this.theirs = theirs;
    this.matchmaker = matchmaker;
    this.conditions = mine.ads.map((ad) => this.conditionsOf(ad));
    this.ranks = mine.ads.map((ad) => this.rankOf(ad));
  }

  /** An ad without Requirements accepts nobody. */
  accepts(my: number, their: number): boolean {
    const conditions = this.conditions[my];
    if (conditions === undefined) return false;
    for (const table of conditions) if (table.at(my, their) !== 1) return false;
    return true;
  }

  rank(my: number, their: number): number {
    const rank = this.ranks[my] ?? 0;
    return typeof rank === 'number' ? rank : rank.at(my, their);
  }

  private conditionsOf(ad: ClassAd): readonly PairTable[] | undefined {
    const requirements = ad.find('requirements');
    if (requirements === undefined) return undefined;
    const whole = attributesOf(requirements, ad).my.has('requirements');
    const clauses = whole ? [requirements] : clausesOf(requirements, ad);
    // Those with few answers first: they spare evaluations of those with many.
    return clauses.map((clause) => this.table(clause, toCondition)).sort((a, b) => a.size - b.size);
  }

  private rankOf(ad: ClassAd): PairTable | number {
    const rank = ad.find('rank');
    if (rank === undefined) return 0;
    return rank.kind === 'literal' && rank.code === undefined ? toRank(rank.result) : this.table(rank, toRank);
  }

  private table(expr: Expr, read: (value: Value) => number): PairTable {
    const key = read === toRank ? `rank ${this.textOf(expr)}` : this.textOf(expr);
    const known = this.tables.get(key);
    if (known !== undefined) return known;
    const { mine, theirs, dynamic } = reach(attributesOf(expr), this.mine, this.theirs);
    const table = new PairTable(
      this.mine.divided(dynamic ? undefined : [...mine].sort()),
      this.theirs.divided(dynamic ? undefined : [...theirs].sort()),
      (my, their) => {
        const [ad, other] = [this.mine.ads[my], this.theirs.ads[their]];
        return ad === undefined || other === undefined ? 0 : read(this.matchmaker.evaluate(expr, ad, other));
      },
    );
    this.tables.set(key, table);
    return table;
  }

  private textOf(expr: Expr): string {
    const text = this.texts.get(expr) ?? printExpr(expr, 'new');
    this.texts.set(expr, text);
    return text;
  }
}

function toCondition(value: Value): number {
  return asCondition(value) === true ? 1 : 0;
}

function toRank(value: Value): number {
  return isNumeric(value) && !Number.isNaN(toDouble(value)) ? toDouble(value) : 0;
}
