import { Complaint } from './problem.ts';

const SPACE = 32;
const TAB = 9;
const RETURN = 13;
const DOUBLE = 34;
const SINGLE = 39;
const BACKSLASH = 92;

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB || code === RETURN;
}

function isQuote(code: number): boolean {
  return code === DOUBLE || code === SINGLE;
}

/**
 * The words of one line of a DAG file. Blanks separate words except inside quotes, and only inside quotes does `\`
 * escape the next character. An empty string means the end of the line.
 */
export class Lexer {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The next word with its quotes. Throws a Complaint if a quote is not closed. */
  next(): string {
    return this.word(false);
  }

  /** The next word without its quotes, for paths that may contain blanks. */
  nextUnquoted(): string {
    return this.word(true);
  }

  peek(): string {
    const was = this.at;
    try {
      return this.next();
    } finally {
      this.at = was;
    }
  }

  /** The rest of the line, trimmed. */
  rest(): string {
    const rest = this.text.slice(this.at).trim();
    this.at = this.text.length;
    return rest;
  }

  /**
   * The next `key = value`, with blanks allowed around the sign; `undefined` at the end of the line. A quoted value
   * loses exactly its first and last character, so that text after the closing quote corrupts it, as in DAGMan.
   */
  pair(): { readonly key: string; readonly value: string } | undefined {
    const { text } = this;
    let at = this.blanks(this.at);
    if (at >= text.length) return undefined;
    const start = at;
    while (at < text.length && !isBlank(text.charCodeAt(at)) && text[at] !== '=') {
      if (isQuote(text.charCodeAt(at))) throw new Complaint('Key contains quotation mark');
      at++;
    }
    const key = text.slice(start, at);
    if (key === '') throw new Complaint('Key value pair missing key');
    at = this.blanks(at);
    if (at >= text.length) throw new Complaint('Key value pair missing operator and value', `Write ${key}="…".`);
    if (text[at] !== '=') {
      throw new Complaint('Key value pair missing value: Failed to locate operator', `Write ${key}="…".`);
    }
    at = this.blanks(at + 1);
    if (at >= text.length) throw new Complaint('Key value pair missing value: No value specified', `Write ${key}="…".`);
    if (text[at] === '=') throw new Complaint('Key value pair missing value: Double operator');
    this.at = at;
    const value = this.next();
    return { key, value: isQuote(value.charCodeAt(0)) ? value.slice(1, -1) : value };
  }

  private blanks(from: number): number {
    let at = from;
    while (at < this.text.length && isBlank(this.text.charCodeAt(at))) at++;
    return at;
  }

  private word(trim: boolean): string {
    const { text } = this;
    let at = this.blanks(this.at);
    const start = at;
    for (;;) {
      const code = at < text.length ? text.charCodeAt(at) : SPACE;
      if (isBlank(code)) {
        this.at = at;
        return text.slice(start, at);
      }
      if (isQuote(code)) return this.quotedWord(start, at, trim);
      at++;
    }
  }

  private quotedWord(start: number, from: number, trim: boolean): string {
    const { text } = this;
    let word = text.slice(start, from);
    let quote = 0;
    let at = from;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (quote === 0) {
        if (isBlank(code)) {
          // A word that is empty without its quotes does not count; look for the next one.
          if (word !== '') break;
        } else if (isQuote(code)) {
          quote = code;
          if (!trim) word += text[at];
        } else word += text[at];
      } else if (code === BACKSLASH) {
        at++;
        if (at < text.length) word += text[at];
      } else if (code === quote) {
        quote = 0;
        if (!trim) word += text[at];
      } else {
        // Whole runs, not single characters: a value may have millions.
        let end = at + 1;
        while (end < text.length && text.charCodeAt(end) !== quote && text.charCodeAt(end) !== BACKSLASH) end++;
        word += text.slice(at, end);
        at = end - 1;
      }
    }
    this.at = at;
    if (quote !== 0) throw new Complaint('Invalid quoting: no ending quote found', 'Close the quote, or remove it.');
    return word;
  }
}
