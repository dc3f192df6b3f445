import { ClassAd } from './ad.ts';
import { type Expr, list, literal, record } from './expr.ts';
import { oldReal } from './number-text.ts';
import { parseExpr } from './parse.ts';
import { attrsByName, printExpr, printValue } from './printer.ts';
import { ClassAdSyntaxError } from './syntax-error.ts';
import { wrap64 } from './int64.ts';
import { isInt, ListValue, Real, type Value } from './values.ts';

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

function escapeJson(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\x01-\x1f"\\]/g, (char) => {
    return ESCAPES[char] ?? `\\u00${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  });
}

/** How the JSON of an ad is laid out: as in `condor_q -json`, or on one line (`-jsonl`). */
export interface JsonLayout {
  readonly oneLine?: boolean;
}

/** An ad in the JSON of condor_q: names sorted, everything but plain values as `"\/Expr(…)\/"`, undefined as null. */
export function toJson(ad: ClassAd, layout: JsonLayout = {}): string {
  return new JsonPrinter(layout.oneLine === true).record(ad.allEntries());
}

class JsonPrinter {
  private readonly oneLine: boolean;
  private indent = 0;

  constructor(oneLine: boolean) {
    this.oneLine = oneLine;
  }

  record(attrs: Iterable<readonly [string, Expr]>): string {
    return this.block('{', '}', attrsByName(attrs), ([name, expr]) => `"${escapeJson(name)}": ${this.expr(expr)}`);
  }

  private expr(expr: Expr): string {
    if (expr.kind === 'literal') return this.value(expr.value);
    if (expr.kind === 'list') return this.block('[', ']', expr.items, (item) => this.expr(item));
    return expr.kind === 'record' ? this.record(expr.attrs) : quoted(printExpr(expr, 'new'));
  }

  private value(value: Value): string {
    if (value === undefined) return 'null';
    if (typeof value === 'string') return `"${escapeJson(value)}"`;
    if (isInt(value) || typeof value === 'boolean') return String(value);
    if (value instanceof Real && Number.isFinite(value.value)) return oldReal(value.value);
    if (value instanceof ListValue) return this.block('[', ']', value.items, (item) => this.expr(item));
    return value instanceof ClassAd ? this.record(value.entries()) : quoted(printValue(value, 'new'));
  }

  private block<T>(open: string, close: string, items: readonly T[], print: (item: T) => string): string {
    if (this.oneLine) return open + items.map(print).join(',') + close;
    this.indent += 2;
    const line = `\n${' '.repeat(this.indent)}`;
    const body = items.map((item) => line + print(item)).join(',');
    this.indent -= 2;
    return `${open}${body}\n${' '.repeat(this.indent)}${close}`;
  }
}

function quoted(expression: string): string {
  return `"\\/Expr(${escapeJson(expression)})\\/"`;
}

/** An ad from such JSON; a string of the form `"\/Expr(…)\/"` is an expression. Throws ClassAdSyntaxError. */
export function fromJson(text: string): ClassAd {
  const reader = new JsonReader(text);
  const expr = reader.whole();
  if (expr.kind !== 'record') throw new ClassAdSyntaxError(text, 0, 'an object', 'something else');
  return ClassAd.fromRecord(expr);
}

const MAX_NESTING = 250;

class JsonReader {
  private readonly text: string;
  private at = 0;
  private nesting = 0;

  constructor(text: string) {
    this.text = text;
  }

  whole(): Expr {
    const expr = this.value();
    this.match(/\s*/y);
    if (this.at < this.text.length) this.fail('the end');
    return expr;
  }

  private fail(expected: string): never {
    const found = this.text.slice(this.at, this.at + 12);
    throw new ClassAdSyntaxError(this.text, this.at, expected, found === '' ? 'the end' : `'${found}'`);
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    this.at += found?.length ?? 0;
    return found;
  }

  private eat(char: string): boolean {
    this.match(/\s*/y);
    if (this.text[this.at] !== char) return false;
    this.at += 1;
    return true;
  }

  private value(): Expr {
    this.match(/\s*/y);
    const char = this.text[this.at];
    if (char === '"') return this.textOrExpression();
    if (char === '{' || char === '[') {
      this.nesting += 1;
      if (this.nesting > MAX_NESTING) this.fail('less nesting');
      const expr = char === '{' ? record(this.members()) : list(this.items());
      this.nesting -= 1;
      return expr;
    }
    const word = this.match(/true\b|false\b|null\b/y);
    if (word !== undefined) return literal(word === 'null' ? undefined : word === 'true');
    const number = this.match(/-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y);
    if (number === undefined) this.fail('a value');
    return literal(/[.eE]/.test(number) ? new Real(Number(number)) : wrap64(BigInt(number)));
  }

  private string(): { text: string; raw: string } {
    const raw = this.match(/"(?:[^"\\]|\\[^])*"/y);
    if (raw === undefined) this.fail('a string');
    try {
      // Accepts raw tabs and newlines, as HTCondor's reader does.
      // oxlint-disable-next-line no-control-regex
      const strict = raw.replace(/[\x00-\x1f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
      return { text: String(JSON.parse(strict)), raw };
    } catch {
      this.at -= raw.length;
      return this.fail('a string with proper escapes');
    }
  }

  private textOrExpression(): Expr {
    const start = this.at;
    const { text, raw } = this.string();
    const expression = raw.startsWith('"\\/Expr(') && raw.endsWith(')\\/"');
    if (!expression) return literal(text);
    try {
      return parseExpr(text.slice('/Expr('.length, -')/'.length), 'new');
    } catch (thrown) {
      if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
      throw new ClassAdSyntaxError(this.text, start, thrown.expected, 'this expression');
    }
  }

  private members(): (readonly [string, Expr])[] {
    this.at += 1;
    const members: (readonly [string, Expr])[] = [];
    if (this.eat('}')) return members;
    do {
      this.match(/\s*/y);
      const name = this.string().text;
      if (!this.eat(':')) this.fail("':'");
      members.push([name, this.value()]);
    } while (this.eat(','));
    if (!this.eat('}')) this.fail("',' or '}'");
    return members;
  }

  private items(): Expr[] {
    this.at += 1;
    const items: Expr[] = [];
    if (this.eat(']')) return items;
    do items.push(this.value());
    while (this.eat(','));
    if (!this.eat(']')) this.fail("',' or ']'");
    return items;
  }
}
