import { attrKey } from './bytes.ts';
import { type Expr, literal, type RecordExpr } from './expr.ts';
import type { Value } from './values.ts';

const SIDES: ReadonlySet<string> = new Set(['my', 'target', 'other']);

/**
 * A ClassAd: attributes by name (any case), each an expression. Expressions are immutable, so `copy` is cheap and ads
 * share them. A chained ad sees its parent's attributes as its own where it has none of that name, at no cost.
 */
export class ClassAd {
  private readonly own = new Map<string, Expr>();
  /** Names as first written, where they are not in lower case. */
  private readonly spelling = new Map<string, string>();
  private chained: ClassAd | undefined;
  private ownSides = false;
  private nested: Map<RecordExpr, ClassAd> | undefined;
  /** The ad around this one: names that are not found here are looked up there. */
  parent: ClassAd | undefined;
  /** Made by a function or a subscript: for `=?=` another type than a written record. */
  shared = false;

  static fromValues(values: Readonly<Record<string, Value>>): ClassAd {
    const ad = new ClassAd();
    for (const [name, value] of Object.entries(values)) ad.set(name, value);
    return ad;
  }

  static fromRecord(record: RecordExpr, parent?: ClassAd): ClassAd {
    const ad = new ClassAd();
    for (const [name, expr] of record.attrs) ad.setExpr(name, expr);
    ad.parent = parent;
    return ad;
  }

  /** Attributes of its own, without the chained parent's. */
  get size(): number {
    return this.own.size;
  }

  /** The expression of an attribute, here or in the chained parent. */
  get(name: string): Expr | undefined {
    return this.find(attrKey(name));
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** As `get`, for a name already folded to lower case. */
  find(key: string): Expr | undefined {
    const expr = this.own.get(key);
    if (expr !== undefined) return expr;
    for (let ad = this.chained; ad !== undefined; ad = ad.chained) {
      const inherited = ad.own.get(key);
      if (inherited !== undefined) return inherited;
    }
    return undefined;
  }

  /** Whether it has, or had, an attribute by the name of a side of a match (MY, TARGET, other). */
  get namesSides(): boolean {
    return this.ownSides || (this.chained?.namesSides ?? false);
  }

  /** Sets an attribute to a constant. */
  set(name: string, value: Value): this {
    return this.setExpr(name, literal(value));
  }

  setExpr(name: string, expr: Expr): this {
    const key = attrKey(name);
    if (SIDES.has(key)) this.ownSides = true;
    if (name !== key && !this.own.has(key)) this.spelling.set(key, name);
    this.own.set(key, expr);
    return this;
  }

  /** Removes an attribute; one that the chained parent has is set to undefined here instead. True if there was one. */
  delete(name: string): boolean {
    const key = attrKey(name);
    const had = this.own.delete(key);
    this.spelling.delete(key);
    if (this.chained?.find(key) === undefined) return had;
    this.set(name, undefined);
    return true;
  }

  /** Names of its own attributes as first written, in the order of insertion. */
  keys(): string[] {
    return [...this.own.keys()].map((key) => this.spelling.get(key) ?? key);
  }

  /** Its own attributes. */
  *entries(): IterableIterator<readonly [name: string, expr: Expr]> {
    for (const [key, expr] of this.own) yield [this.spelling.get(key) ?? key, expr];
  }

  /** Calls `use` with its own attributes, names folded. */
  forEachOwn(use: (key: string, expr: Expr) => void): void {
    this.own.forEach((expr, key) => use(key, expr));
  }

  /** All attributes, the chained parents' included, each once. */
  *allEntries(): IterableIterator<readonly [name: string, expr: Expr]> {
    yield* this.entries();
    if (this.chained === undefined) return;
    for (const [name, expr] of this.chained.allEntries()) if (!this.own.has(attrKey(name))) yield [name, expr];
  }

  /** The ad from which attributes are inherited, if any. */
  get chainedParent(): ClassAd | undefined {
    return this.chained;
  }

  /** Throws on a chain that would lead back to this ad. */
  chainTo(parent: ClassAd | undefined): this {
    for (let ad = parent; ad !== undefined; ad = ad.chained) {
      if (ad === this) throw new Error('a ClassAd cannot be chained to itself');
    }
    this.chained = parent;
    return this;
  }

  /** A copy with the same chained parent, and outside of any other ad. */
  copy(): ClassAd {
    const copy = new ClassAd();
    for (const [key, expr] of this.own) copy.own.set(key, expr);
    for (const [key, name] of this.spelling) copy.spelling.set(key, name);
    copy.ownSides = this.ownSides;
    copy.chained = this.chained;
    return copy;
  }

  /** The ad that a record written in this one stands for: always the same. */
  nestedAd(record: RecordExpr): ClassAd {
    this.nested ??= new Map();
    let ad = this.nested.get(record);
    if (ad === undefined) {
      ad = ClassAd.fromRecord(record, this);
      this.nested.set(record, ad);
    }
    return ad;
  }
}
