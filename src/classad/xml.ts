import { ClassAd } from './ad.ts';
import { type Expr, list, literal, record } from './expr.ts';
import { wrap64 } from './int64.ts';
import { formatExponent } from './number-text.ts';
import { parseExpr } from './parse.ts';
import { attrsByName, printExpr, printString } from './printer.ts';
import { ClassAdSyntaxError } from './syntax-error.ts';
import { absTimeText, parseAbsTime, parseRelTime, relTimeText } from './time-text.ts';
import { AbsTime, ERROR, ErrorValue, isInt, ListValue, Real, RelTime, type Value } from './values.ts';

/** What precedes the ads in a document of `condor_q -xml`; XML_FOOTER follows them. */
export const XML_HEADER = '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n';
export const XML_FOOTER = '</classads>\n';

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** The library escapes as in the new syntax (except for quotes), and then for XML. */
function xmlText(text: string): string {
  return escapeXml(printString(text, 'new').slice(1, -1).replaceAll('\\"', '"'));
}

/** An ad as condor_q prints it in XML (`<c>…</c>` and a newline), with names sorted. */
export function toXml(ad: ClassAd): string {
  return `${recordXml(ad.allEntries(), 0)}\n`;
}

function recordXml(attrs: Iterable<readonly [string, Expr]>, indent: number): string {
  const margin = ' '.repeat(indent + 4);
  const lines = attrsByName(attrs).map(([name, expr]) => {
    return `${margin}<a n="${xmlText(name)}">${exprXml(expr, indent + 4)}</a>\n`;
  });
  return `<c>\n${lines.join('')}${' '.repeat(indent)}</c>`;
}

function exprXml(expr: Expr, indent: number): string {
  if (expr.kind === 'literal') return valueXml(expr.value, indent);
  if (expr.kind === 'list') return `<l>${expr.items.map((item) => exprXml(item, indent)).join('')}</l>`;
  return expr.kind === 'record' ? recordXml(expr.attrs, indent) : `<e>${escapeXml(printExpr(expr, 'new'))}</e>`;
}

function valueXml(value: Value, indent: number): string {
  if (value === undefined) return '<un/>';
  if (typeof value === 'string') return `<s>${xmlText(value)}</s>`;
  if (typeof value === 'boolean') return `<b v="${value ? 't' : 'f'}"/>`;
  if (isInt(value)) return `<i>${value}</i>`;
  if (value instanceof Real) return `<r>${realXml(value.value)}</r>`;
  if (value instanceof ErrorValue) return '<er/>';
  if (value instanceof AbsTime) return `<at>${absTimeText(value)}</at>`;
  if (value instanceof RelTime) return `<rt>${relTimeText(value.secs)}</rt>`;
  if (value instanceof ListValue) return `<l>${value.items.map((item) => exprXml(item, indent)).join('')}</l>`;
  return recordXml(value.entries(), indent);
}

function realXml(value: number): string {
  if (value === 0) return '0.0';
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'INF' : '-INF';
  return formatExponent(value);
}

/** The ads of an XML document of that form, or of a single `<c>…</c>`. Throws ClassAdSyntaxError. */
export function fromXml(text: string): ClassAd[] {
  return new XmlReader(text).ads();
}

const MAX_NESTING = 250;

class XmlReader {
  private readonly text: string;
  private at = 0;
  private nesting = 0;

  constructor(text: string) {
    this.text = text;
  }

  ads(): ClassAd[] {
    this.match(/(?:\s|<\?[^>]*\?>|<!DOCTYPE[^>]*>|<!--[^]*?-->)*/y);
    const wrapped = this.eat('<classads>');
    const ads: ClassAd[] = [];
    while (this.eat('<c>')) ads.push(ClassAd.fromRecord(record(this.attributes())));
    if (wrapped && !this.eat('</classads>')) this.fail("'<c>' or '</classads>'");
    this.match(/\s*/y);
    if (this.at < this.text.length) this.fail("'<c>'");
    return ads;
  }

  private fail(expected: string): never {
    const found = this.text.slice(this.at, this.at + 12);
    throw new ClassAdSyntaxError(this.text, this.at, expected, found === '' ? 'the end' : `'${found}'`);
  }

  private match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return undefined;
    this.at += found[0].length;
    return found;
  }

  private eat(tag: string): boolean {
    const start = this.at;
    this.match(/\s*/y);
    if (this.text.startsWith(tag, this.at)) {
      this.at += tag.length;
      return true;
    }
    this.at = start;
    return false;
  }

  private attributes(): (readonly [string, Expr])[] {
    const attrs: (readonly [string, Expr])[] = [];
    while (!this.eat('</c>')) {
      const name = this.match(/\s*<a\s+n="([^"]*)"\s*>/y);
      if (name === undefined) this.fail("'<a n=\"…\">' or '</c>'");
      attrs.push([this.plain(name[1] ?? ''), this.value()]);
      if (!this.eat('</a>')) this.fail("'</a>'");
    }
    return attrs;
  }

  private plain(source: string): string {
    const text = source.replace(
      /&(?:#([0-9]+)|#x([0-9a-fA-F]+)|(lt|gt|amp|quot|apos));/g,
      (whole, decimal, hex, name: string | undefined) => {
        if (name !== undefined) return { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }[name] ?? whole;
        return String.fromCodePoint(Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10) % 0x110000);
      },
    );
    const parsed = parseExpr(`"${text.replace(/"/g, '\\"')}"`, 'new');
    return parsed.kind === 'literal' && typeof parsed.value === 'string' ? parsed.value : text;
  }

  private value(): Expr {
    this.nesting += 1;
    if (this.nesting > MAX_NESTING) this.fail('less nesting');
    const start = this.at;
    const expr = this.eat('<c>') ? record(this.attributes()) : this.eat('<l>') ? list(this.items()) : this.leaf(start);
    this.nesting -= 1;
    return expr;
  }

  private items(): Expr[] {
    const items: Expr[] = [];
    while (!this.eat('</l>')) items.push(this.value());
    return items;
  }

  private leaf(start: number): Expr {
    const empty = this.match(/\s*<(?:(un|er)|b\s+v="([tf])")\s*\/>/y);
    if (empty !== undefined)
      return literal(empty[1] === 'un' ? undefined : empty[1] === 'er' ? ERROR : empty[2] === 't');
    const found = this.match(/\s*<(s|i|r|e|at|rt)>([^<]*)<\/\1>/y);
    if (found === undefined) this.fail('a value');
    const [, tag = '', body = ''] = found;
    const expr = leafOf(tag, tag === 's' || tag === 'e' ? this.inner(tag, body) : body.trim());
    if (expr !== undefined) return expr;
    this.at = start;
    return this.fail(`a proper <${tag}>`);
  }

  /** Expressions are escaped for XML only, strings also as in the new syntax. */
  private inner(tag: string, body: string): string {
    return tag === 's'
      ? this.plain(body)
      : body.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
  }
}

function leafOf(tag: string, body: string): Expr | undefined {
  switch (tag) {
    case 's':
      return literal(body);
    case 'i':
      return /^-?[0-9]+$/.test(body) ? literal(wrap64(BigInt(body))) : undefined;
    case 'r':
      return literal(new Real(readReal(body)));
    case 'at': {
      const time = parseAbsTime(body);
      return time === undefined ? undefined : literal(time);
    }
    case 'rt': {
      const time = parseRelTime(body);
      return time === undefined ? undefined : literal(time);
    }
    default:
      return parseExpr(body, 'new');
  }
}

function readReal(body: string): number {
  if (body === 'INF') return Number.POSITIVE_INFINITY;
  return body === '-INF' ? Number.NEGATIVE_INFINITY : Number(body);
}
