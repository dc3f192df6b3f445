import { ClassAd } from './ad.ts';
import { compareTextFolded, fromBytes, toBytes } from './bytes.ts';
import type { BinaryOp, Expr } from './expr.ts';
import { newReal, oldReal } from './number-text.ts';
import { absTimeText, relTimeText } from './time-text.ts';
import { AbsTime, ErrorValue, ListValue, Real, RelTime, type Value } from './values.ts';

/** `old`: as HTCondor's tools print; `new`: the strict syntax. */
export type Syntax = 'old' | 'new';

const RESERVED = new Set(['error', 'false', 'is', 'isnt', 'parent', 'true', 'undefined']);
const NAMED_ESCAPES: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
};

/** The order in which a record's attributes are printed: shorter names first, then by name. */
export function sortedAttrs(attrs: Iterable<readonly [string, Expr]>): (readonly [string, Expr])[] {
  return [...attrs].sort(([a], [b]) => a.length - b.length || compareTextFolded(a, b));
}

/** The order in which the tools list an ad: by name, ignoring case. */
export function attrsByName(attrs: Iterable<readonly [string, Expr]>): (readonly [string, Expr])[] {
  return [...attrs].sort(([a], [b]) => compareTextFolded(a, b));
}

function escape(text: string, quote: string, syntax: Syntax): string {
  if (syntax === 'old') return text.replaceAll(quote, `\\${quote}`);
  // oxlint-disable-next-line no-control-regex
  const escaped = toBytes(text).replace(/[\x00-\x1f\x7f-\xff\\]/g, (char) => {
    return NAMED_ESCAPES[char] ?? `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`;
  });
  return fromBytes(escaped.replaceAll(quote, `\\${quote}`));
}

export function printString(text: string, syntax: Syntax): string {
  return `"${escape(text, '"', syntax)}"`;
}

/** An attribute name in an expression: quoted unless it is a plain name. */
export function printName(name: string, syntax: Syntax): string {
  const text = escape(name, "'", syntax);
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) && !RESERVED.has(text.toLowerCase()) ? text : `'${text}'`;
}

/** Writes expressions and values; subclasses lay out lists and records differently. */
export class Printer {
  readonly syntax: Syntax;

  constructor(syntax: Syntax) {
    this.syntax = syntax;
  }

  value(value: Value): string {
    if (value === undefined) return 'undefined';
    if (typeof value === 'string') return printString(value, this.syntax);
    if (value instanceof Real) return this.syntax === 'old' ? oldReal(value.value) : newReal(value.value);
    if (value instanceof ErrorValue) return 'error';
    if (value instanceof AbsTime) return `absTime("${absTimeText(value)}")`;
    if (value instanceof RelTime) return `relTime("${relTimeText(value.secs)}")`;
    if (value instanceof ListValue) return this.list(value.items);
    if (value instanceof ClassAd) return this.record(value.entries());
    return String(value);
  }

  expr(expr: Expr): string {
    switch (expr.kind) {
      case 'literal':
        return this.value(expr.value);
      case 'ref':
        if (expr.base !== undefined) return this.spine(expr);
        return (expr.absolute ? '.' : '') + printName(expr.name, this.syntax);
      case 'unary':
        return expr.op === '()' ? `(${this.expr(expr.operand)})` : ` ${expr.op}${this.expr(expr.operand)}`;
      case 'binary':
        return this.spine(expr);
      case 'ternary':
        return `${this.expr(expr.test)} ? ${this.expr(expr.yes)} : ${this.expr(expr.no)}`;
      case 'call':
        return `${expr.name}(${expr.args.map((arg) => this.expr(arg)).join(',')})`;
      case 'list':
        return this.list(expr.items);
      case 'record':
        return this.record(expr.attrs);
    }
  }

  protected list(items: readonly Expr[]): string {
    return `{ ${items.map((item) => this.expr(item)).join(',')} }`;
  }

  protected record(attrs: Iterable<readonly [string, Expr]>): string {
    const parts = sortedAttrs(attrs).map(([name, expr]) => `${printName(name, this.syntax)} = ${this.expr(expr)}`);
    return `[ ${parts.join('; ')} ]`;
  }

  /**
   * Left-deep chains (`a + b + c …`, `a.b.c …`) may be longer than the stack is deep, hence a loop instead of
   * recursion.
   */
  private spine(top: Expr): string {
    const tails: string[] = [];
    let node = top;
    for (;;) {
      if (node.kind === 'binary') {
        const right = this.expr(node.right);
        tails.push(node.op === '[]' ? `[${right}]` : `${this.operator(node.op)}${right}`);
        node = node.left;
      } else if (node.kind === 'ref' && node.base !== undefined) {
        tails.push(`.${node.name}`);
        node = node.base;
      } else break;
    }
    return this.expr(node) + tails.reverse().join('');
  }

  protected operator(op: BinaryOp): string {
    if (this.syntax === 'new' && op === '=?=') return ' is ';
    if (this.syntax === 'new' && op === '=!=') return ' isnt ';
    return ` ${op} `;
  }
}

/** The layout of unparse(): one item per line, in the new syntax. */
export class PrettyPrinter extends Printer {
  private indent = 0;

  constructor() {
    super('new');
  }

  protected override list(items: readonly Expr[]): string {
    return this.block('{', '}', 3, ',', items, (item) => this.expr(item));
  }

  protected override record(attrs: Iterable<readonly [string, Expr]>): string {
    return this.block('[', ']', 4, '; ', sortedAttrs(attrs), ([name, expr]) => {
      return `${printName(name, 'new')} = ${this.expr(expr)}`;
    });
  }

  private block<T>(
    open: string,
    close: string,
    by: number,
    mark: string,
    items: readonly T[],
    print: (item: T) => string,
  ) {
    this.indent += by;
    const edge = `\n${' '.repeat(this.indent)}`;
    this.indent += by;
    const line = `\n${' '.repeat(this.indent)}`;
    const body = items.map((item) => line + print(item)).join(mark);
    this.indent -= 2 * by;
    return edge + open + body + edge + close;
  }
}

const OLD = new Printer('old');
const NEW = new Printer('new');

export function printValue(value: Value, syntax: Syntax = 'old'): string {
  return (syntax === 'old' ? OLD : NEW).value(value);
}

export function printExpr(expr: Expr, syntax: Syntax = 'old'): string {
  return (syntax === 'old' ? OLD : NEW).expr(expr);
}

/**
 * An ad as `condor_q -l` prints it: one `Name = expression` per line, including the chained parent's, sorted by name.
 */
export function printAd(ad: ClassAd): string {
  return attrsByName(ad.allEntries())
    .map(([name, expr]) => `${name} = ${OLD.expr(expr)}\n`)
    .join('');
}
