import { fromBytes, isSpace, toBytes } from './bytes.ts';
import { wrap64 } from './int64.ts';
import { readDouble } from './number-text.ts';
import { ClassAdSyntaxError } from './syntax-error.ts';
import { ERROR, type Int, Real, type Value } from './values.ts';

/** The syntax variant to read. */
export interface Dialect {
  /** Old strings: a backslash is literal, except before a quote. New: C's escapes, and adjacent strings are joined. */
  readonly oldStrings: boolean;
  /** Old numbers: an integer may not begin with 0, and `;` separates arguments like `,`. */
  readonly oldNumbers: boolean;
}

export type Token =
  | { readonly type: 'value'; readonly value: Value; readonly start: number }
  | { readonly type: 'name'; readonly name: string; readonly start: number }
  | { readonly type: 'op'; readonly op: string; readonly start: number }
  | { readonly type: 'end'; readonly start: number }
  | { readonly type: 'bad'; readonly start: number; readonly why: string };

const DIGIT = /[0-9]/;
const PUNCTUATION = /=\?=|=!=|>>>|<<|>>|<=|>=|==|!=|&&|\|\||[*/%+\-~^?:;,[\](){}&|<>=!]/y;
const NUMBER =
  /0[xX][0-9a-fA-F]+(?:\.[0-9][0-9a-fA-F]*)?|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.{1,2}[0-9]+(?:[eE][+-]?[0-9]+)?/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const CONSTANTS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['true', true],
  ['false', false],
  ['error', ERROR],
  ['undefined', undefined],
]);
const OPERATORS: ReadonlyMap<string, string> = new Map([
  ['is', '=?='],
  ['isnt', '=!='],
]);
const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** Splits ClassAd text into tokens, one at a time. Never throws: unreadable text becomes a token of type `bad`. */
export class Lexer {
  readonly text: string;
  private readonly dialect: Dialect;
  private at = 0;
  private before: Token | undefined;

  constructor(text: string, dialect: Dialect) {
    this.text = text;
    this.dialect = dialect;
  }

  next(): Token {
    this.before = this.read();
    return this.before;
  }

  private read(): Token {
    const open = this.skipBlanks();
    const start = this.at;
    if (open) return { type: 'bad', start, why: 'an unterminated comment' };
    const char = this.text[start];
    if (char === undefined || char === '\0') return { type: 'end', start };
    if (char === '"' || char === "'") return this.quoted(start, char);
    if (DIGIT.test(char) || char === '.' || (char === '-' && this.mayBeSign())) {
      const token = this.number(start, char);
      if (token !== undefined) return token;
    }
    const name = this.match(NAME);
    if (name !== undefined) return word(name, start);
    return this.punctuation(start, char);
  }

  /** A minus after a value or a closing bracket is always the operator. */
  private mayBeSign(): boolean {
    const last = this.before;
    if (last === undefined) return true;
    if (last.type === 'value' || last.type === 'name') return false;
    return last.type !== 'op' || !['.', ']', ')', '}'].includes(last.op);
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  /** Returns true if a comment is not closed. */
  private skipBlanks(): boolean {
    for (;;) {
      while (this.at < this.text.length && isSpace(this.text.charAt(this.at))) this.at += 1;
      const two = this.text.slice(this.at, this.at + 2);
      if (two === '//') {
        const end = this.text.indexOf('\n', this.at);
        this.at = end < 0 ? this.text.length : end;
      } else if (two === '/*') {
        const end = this.text.indexOf('*/', this.at + 2);
        if (end < 0) return true;
        this.at = end + 2;
      } else return false;
    }
  }

  private number(start: number, first: string): Token | undefined {
    const negative = first === '-';
    if (negative) this.at += 1;
    const digits = this.match(NUMBER);
    if (digits === undefined) {
      // A selection (the library reads "..a" as one dot) or a minus sign.
      this.at = start + 1;
      if (negative) return { type: 'op', op: '-', start };
      if (this.text[this.at] === '.') this.at += 1;
      return { type: 'op', op: '.', start };
    }
    if (negative && digits.startsWith('..')) {
      this.at = start + 1;
      return { type: 'op', op: '-', start };
    }
    const text = negative ? `-${digits}` : digits;
    const after = this.text.charAt(this.at);
    // A hexadecimal fraction is a real; hexadecimal digits with only a point are invalid.
    if (/[xX].*\./.test(digits)) return { type: 'value', value: new Real(readDouble(text) ?? 0), start };
    // The digits may not be followed by what looks like more of the number.
    const whole = /[xX]/.test(digits) || !/[.eE]/.test(digits);
    const broken = whole && (after === '.' || /[eE]/.test(after));
    if (broken || (digits === '0' && /[xX]/.test(after)))
      return { type: 'bad', start, why: `the malformed number ${text}${after}` };
    if (/[.eE]/.test(digits) && !/[xX]/.test(digits)) {
      if (/^[0-9.]*$/.test(digits) && /[eE]/.test(after))
        return { type: 'bad', start, why: `the malformed number ${text}${after}` };
      return { type: 'value', value: new Real(digits.startsWith('..') ? 0 : Number(text)), start };
    }
    if (/^0[0-9]*[89]/.test(digits)) return { type: 'bad', start, why: `${text}, which is not an octal number` };
    if (this.dialect.oldNumbers && text.startsWith('0') && text.length > 1)
      return { type: 'bad', start, why: `${text}: an integer may not begin with 0` };
    return { type: 'value', value: readInteger(text), start };
  }

  private quoted(start: number, quote: string): Token {
    const read = this.dialect.oldStrings ? this.oldString(quote) : this.newString(quote);
    if (read === undefined) return { type: 'bad', start, why: 'an unclosed quote, or a \\0 in a string' };
    return quote === '"' ? { type: 'value', value: read, start } : { type: 'name', name: read, start };
  }

  private oldString(quote: string): string | undefined {
    let value = '';
    this.at += 1;
    for (;;) {
      const end = this.text.indexOf(quote, this.at);
      if (end < 0) return undefined;
      const piece = this.text.slice(this.at, end);
      if (piece.includes('\0')) return undefined;
      this.at = end + 1;
      const after = this.text[this.at];
      if (!piece.endsWith('\\')) return value + piece;
      // A backslash before the quote that ends the text (or its line) is part of the string.
      if (after === undefined || after === '\n' || after === '\0') return value + piece;
      value += piece.slice(0, -1) + quote;
    }
  }

  private newString(quote: string): string | undefined {
    let raw = '';
    for (;;) {
      let end = this.at + 1;
      while (end < this.text.length && this.text[end] !== quote) end += this.text[end] === '\\' ? 2 : 1;
      if (end >= this.text.length) return undefined;
      const piece = this.text.slice(this.at + 1, end);
      if (piece.includes('\0')) return undefined;
      raw += piece;
      let next = end + 1;
      while (next < this.text.length && isSpace(this.text.charAt(next))) next += 1;
      this.at = next;
      if (this.text[next] !== quote) return unescape(raw);
    }
  }

  private punctuation(start: number, char: string): Token {
    const op = this.match(PUNCTUATION);
    if (op === undefined) return { type: 'bad', start, why: `the character ${JSON.stringify(char)}` };
    if (op === '=' && this.text[this.at] === '?') return { type: 'bad', start, why: '=? without its =' };
    if (op === '?') {
      const rest = /[ \t\n\v\f\r]*:/y;
      if (this.match(rest) !== undefined) return { type: 'op', op: '?:', start };
    }
    return { type: 'op', op, start };
  }
}

function word(name: string, start: number): Token {
  const lower = name.toLowerCase();
  const op = OPERATORS.get(lower);
  if (op !== undefined) return { type: 'op', op, start };
  if (CONSTANTS.has(lower)) return { type: 'value', value: CONSTANTS.get(lower), start };
  return { type: 'name', name, start };
}

/** Decimal digits up to the first other character ("0x1F" is 0); a value that does not fit in 64 bits is 0. */
function readInteger(text: string): Int {
  const value = BigInt(/^-?[0-9]+/.exec(text)?.[0] ?? '0');
  return value === BigInt.asIntN(64, value) ? wrap64(value) : 0;
}

/** C's escapes; `undefined` if one of them produces a NUL. */
function unescape(raw: string): string | undefined {
  if (!raw.includes('\\')) return raw;
  let nul = false;
  const bytes = toBytes(raw).replace(/\\([0-7]{1,3}|[^])/g, (_whole, escape: string) => {
    if (!/^[0-7]/.test(escape)) return ESCAPES[escape] ?? escape;
    const two = Number.parseInt(escape.slice(0, 2), 8);
    // A third digit belongs to the escape only if the first two are below 040.
    const length = escape.length === 3 && two >= 0o40 ? 2 : escape.length;
    const code = Number.parseInt(escape.slice(0, length), 8);
    if (code === 0) nul = true;
    return String.fromCharCode(code) + escape.slice(length);
  });
  return nul ? undefined : fromBytes(bytes);
}

/** A token as messages name it. */
export function describe(token: Token, text: string): string {
  if (token.type === 'end') return 'the end';
  if (token.type === 'bad') return token.why;
  return `'${/^(?:\w+|[^\w\s]{1,3}|.)/s.exec(text.slice(token.start))?.[0] ?? ''}'`;
}

export function syntaxError(text: string, token: Token, expected: string): ClassAdSyntaxError {
  return new ClassAdSyntaxError(text, token.start, expected, describe(token, text));
}
