import { clausesOf } from './clauses.ts';
import type { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';
import type { Matchmaker } from './matchmaker.ts';
import { Comparison, isOrder, Operand, type PairAnswers, PairTable } from './pair-answers.ts';
import { type Population, type Reach, reach } from './population.ts';
import { printExpr } from './printer.ts';
import { attributesOf } from './references.ts';
import { asCondition, isNumeric, toDouble, type Value } from './values.ts';

/**
 * How the ads of one side match those of the other, by Requirements, split at `&&`, and Rank. `Memory >= 2048` is
 * evaluated once per distinct amount of memory, not once per slot.
 */
export class MatchAnalysis {
  private readonly mine: Population;
  private readonly theirs: Population;
  private readonly matchmaker: Matchmaker;
  private readonly conditions: (readonly PairAnswers[] | undefined)[];
  private readonly ranks: (PairAnswers | number)[];
  private readonly tables = new Map<string, PairAnswers>();
  private readonly operands = new Map<string, Operand>();
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

  private conditionsOf(ad: ClassAd): readonly PairAnswers[] | undefined {
    const requirements = ad.find('requirements');
    if (requirements === undefined) return undefined;
    const whole = attributesOf(requirements, ad).my.has('requirements');
    const clauses = whole ? [requirements] : clausesOf(requirements, ad);
    // Conditions with few distinct answers come first and save evaluations of the others.
    return clauses.map((clause) => this.table(clause, toCondition)).sort((a, b) => a.size - b.size);
  }

  private rankOf(ad: ClassAd): PairAnswers | number {
    const rank = ad.find('rank');
    if (rank === undefined) return 0;
    return rank.kind === 'literal' && rank.code === undefined ? toRank(rank.result) : this.table(rank, toRank);
  }

  private table(expr: Expr, read: (value: Value) => number): PairAnswers {
    const key = read === toRank ? `rank ${this.textOf(expr)}` : this.textOf(expr);
    const known = this.tables.get(key);
    if (known !== undefined) return known;
    const answers = this.comparison(expr, read) ?? this.pairTable(expr, read);
    this.tables.set(key, answers);
    return answers;
  }

  private pairTable(expr: Expr, read: (value: Value) => number): PairAnswers {
    const { mine, theirs, dynamic } = this.reachOf(expr);
    return new PairTable(
      this.mine.divided(dynamic ? undefined : [...mine].sort()),
      this.theirs.divided(dynamic ? undefined : [...theirs].sort()),
      (my, their) => {
        const [ad, other] = [this.mine.ads[my], this.theirs.ads[their]];
        return ad === undefined || other === undefined ? 0 : read(this.matchmaker.evaluate(expr, ad, other));
      },
    );
  }

  /** Applies if each operand depends on one side only, and on different ones. */
  private comparison(expr: Expr, read: (value: Value) => number): PairAnswers | undefined {
    if (expr.kind !== 'binary' || !isOrder(expr.op)) return undefined;
    const [left, right] = [this.sideOf(expr.left), this.sideOf(expr.right)];
    if (left === undefined || right === undefined || left === right) return undefined;
    const mineFirst = left === 'mine';
    const [a, b] = mineFirst ? [expr.left, expr.right] : [expr.right, expr.left];
    return new Comparison(expr.op, this.operand(a, 'mine'), this.operand(b, 'theirs'), mineFirst, read);
  }

  private sideOf(expr: Expr): 'mine' | 'theirs' | undefined {
    const { mine, theirs, dynamic } = this.reachOf(expr);
    if (dynamic || mine.size + theirs.size === 0 || (mine.size > 0 && theirs.size > 0)) return undefined;
    return mine.size > 0 ? 'mine' : 'theirs';
  }

  private operand(expr: Expr, side: 'mine' | 'theirs'): Operand {
    const key = `${side} ${this.textOf(expr)}`;
    const known = this.operands.get(key);
    if (known !== undefined) return known;
    const reached = this.reachOf(expr);
    const [my, their] = [this.mine.ads[0], this.theirs.ads[0]];
    // The operand does not depend on the other side, so any ad will do there.
    const operand =
      side === 'mine'
        ? new Operand(expr, this.mine, this.mine.divided([...reached.mine].sort()), (each, ad) =>
            their === undefined ? undefined : this.matchmaker.evaluate(each, ad, their),
          )
        : new Operand(expr, this.theirs, this.theirs.divided([...reached.theirs].sort()), (each, ad) =>
            my === undefined ? undefined : this.matchmaker.evaluate(each, my, ad),
          );
    this.operands.set(key, operand);
    return operand;
  }

  /** A bare name that all ads of this side have is never looked up on the other; one that none has, only there. */
  private reachOf(expr: Expr): Reach {
    const first = attributesOf(expr, undefined, (name) => this.mine.has(name));
    return reach(first, this.mine, this.theirs);
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
