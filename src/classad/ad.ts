import { attrKey } from './bytes.ts';
import { type Expr, literal, type RecordExpr } from './expr.ts';
import type { Value } from './values.ts';

const SIDES: ReadonlySet<string> = new Set(['my', 'target', 'other']);

/** The attributes of an ad of which only those that are looked up are to be parsed. */
export interface AttributeSource {
  /** `key`: a name folded to lower case. */
  find(key: string): Expr | undefined;
  entries(): Iterable<readonly [name: string, expr: Expr]>;
}

/**
 * A ClassAd: attributes by name (in any case), each an expression. Expressions are immutable, so ads can share them and
 * `copy` is cheap. A chained ad inherits the attributes of its parent that it does not define itself, at no cost.
 */
export class ClassAd {
  private readonly own = new Map<string, Expr>();
  /** Names as first written, unless they are in lower case. */
  private readonly spelling = new Map<string, string>();
  private chained: ClassAd | undefined;
  private ownSides = false;
  /** Until more than single names are looked up. */
  private unread: AttributeSource | undefined;
  private nested: Map<RecordExpr, ClassAd> | undefined;
  /** The ad around this one, in which names not found here are looked up. */
  parent: ClassAd | undefined;
  /** Made by a function or a subscript; `=?=` considers it of another type than a written record. */
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

  /** An ad whose attributes are those of the source, which must not change. */
  static reading(source: AttributeSource): ClassAd {
    const ad = new ClassAd();
    ad.unread = source;
    return ad;
  }

  /** The number of its own attributes, not counting the chained parent's. */
  get size(): number {
    this.read();
    return this.own.size;
  }

  /** The expression of an attribute, its own or the chained parent's. */
  get(name: string): Expr | undefined {
    return this.find(attrKey(name));
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** Like `get`, for a name already folded to lower case. */
  find(key: string): Expr | undefined {
    const expr = this.unread === undefined ? this.own.get(key) : this.unread.find(key);
    return expr ?? this.chained?.find(key);
  }

  /** Whether it has, or had, an attribute with the name of a match's side (MY, TARGET, other). */
  get namesSides(): boolean {
    const { unread } = this;
    const own = unread === undefined ? this.ownSides : [...SIDES].some((side) => unread.find(side) !== undefined);
    return own || (this.chained?.namesSides ?? false);
  }

  /** Sets an attribute to a constant. */
  set(name: string, value: Value): this {
    return this.setExpr(name, literal(value));
  }

  setExpr(name: string, expr: Expr): this {
    this.read();
    const key = attrKey(name);
    if (SIDES.has(key)) this.ownSides = true;
    if (name !== key && !this.own.has(key)) this.spelling.set(key, name);
    this.own.set(key, expr);
    return this;
  }

  /**
   * Removes an attribute; one inherited from the chained parent is instead set to undefined here. Returns true if there
   * was one.
   */
  delete(name: string): boolean {
    this.read();
    const key = attrKey(name);
    const had = this.own.delete(key);
    this.spelling.delete(key);
    if (this.chained?.find(key) === undefined) return had;
    this.set(name, undefined);
    return true;
  }

  /** The names of its own attributes as first written, in order of insertion. */
  keys(): string[] {
    this.read();
    return [...this.own.keys()].map((key) => this.spelling.get(key) ?? key);
  }

  /** Its own attributes. */
  *entries(): IterableIterator<readonly [name: string, expr: Expr]> {
    this.read();
    for (const [key, expr] of this.own) yield [this.spelling.get(key) ?? key, expr];
  }

  /** Calls `use` for each of its own attributes, with folded names. */
  forEachOwn(use: (key: string, expr: Expr) => void): void {
    this.read();
    this.own.forEach((expr, key) => use(key, expr));
  }

  /** All attributes including those of the chained parents, each once. */
  *allEntries(): IterableIterator<readonly [name: string, expr: Expr]> {
    yield* this.entries();
    if (this.chained === undefined) return;
    for (const [name, expr] of this.chained.allEntries()) if (!this.own.has(attrKey(name))) yield [name, expr];
  }

  /** The ad from which attributes are inherited, if any. */
  get chainedParent(): ClassAd | undefined {
    return this.chained;
  }

  /** Throws if the chain would lead back to this ad. */
  chainTo(parent: ClassAd | undefined): this {
    for (let ad = parent; ad !== undefined; ad = ad.chained) {
      if (ad === this) throw new Error('a ClassAd cannot be chained to itself');
    }
    this.chained = parent;
    return this;
  }

  /** A copy with the same chained parent, but outside any other ad. */
  copy(): ClassAd {
    this.read();
    const copy = new ClassAd();
    for (const [key, expr] of this.own) copy.own.set(key, expr);
    for (const [key, name] of this.spelling) copy.spelling.set(key, name);
    copy.ownSides = this.ownSides;
    copy.chained = this.chained;
    return copy;
  }

  /** The ad for a record written in this one; always the same object. */
  nestedAd(record: RecordExpr): ClassAd {
    this.nested ??= new Map();
    let ad = this.nested.get(record);
    if (ad === undefined) {
      ad = ClassAd.fromRecord(record, this);
      this.nested.set(record, ad);
    }
    return ad;
  }

  private read(): void {
    const { unread } = this;
    if (unread === undefined) return;
    this.unread = undefined;
    for (const [name, expr] of unread.entries()) this.setExpr(name, expr);
  }
}
