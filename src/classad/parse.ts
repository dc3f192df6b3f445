import { ClassAd } from './ad.ts';
import type { Expr } from './expr.ts';
import type { Dialect } from './lexer.ts';
import { Parser } from './parser.ts';
import type { Syntax } from './printer.ts';
import { ClassAdSyntaxError } from './syntax-error.ts';

const OLD: Dialect = { oldStrings: true, oldNumbers: true };
const NEW: Dialect = { oldStrings: false, oldNumbers: false };
/** New syntax in old evaluation: for records in the tools and for the text of eval(). */
const NEW_IN_OLD: Dialect = { oldStrings: false, oldNumbers: true };

/**
 * Parses one expression. In the `old` syntax (the default: submit files, configuration, `--constraint`) a backslash in
 * a string is an ordinary character; in the `new` one it begins an escape. Throws ClassAdSyntaxError.
 */
export function parseExpr(text: string, syntax: Syntax = 'old'): Expr {
  return new Parser(text, syntax === 'old' ? OLD : NEW).wholeExpression();
}

/** Like `parseExpr` in the old syntax, but also rejects text after a `? :`, which HTCondor's library ignores. */
export function parseWholeExpr(text: string): Expr {
  return new Parser(text, OLD).wholeExpression(true);
}

/** Parses a record `[ a = 1; b = a + 1 ]`, with strings in the new syntax. Throws ClassAdSyntaxError. */
export function parseAd(text: string, mode: Syntax = 'old'): ClassAd {
  const record = new Parser(text, mode === 'old' ? NEW_IN_OLD : NEW).wholeRecord();
  if (record.kind !== 'record') throw new ClassAdSyntaxError(text, 0, "'['", 'something else');
  return ClassAd.fromRecord(record);
}

const ASSIGNMENT = /^[ \t]*([A-Za-z_][A-Za-z0-9_.]*|'[^']+')[ \t]*=/;

/**
 * Parses an ad in the old form, one `Name = expression` per line, as `condor_q -l` prints it; blank lines and lines
 * beginning with `#` are skipped. Throws ClassAdSyntaxError.
 */
export function parseOldAd(text: string): ClassAd {
  const ad = new ClassAd();
  let offset = 0;
  for (const line of text.split('\n')) {
    const trimmed = line.trim();
    if (trimmed !== '' && !trimmed.startsWith('#')) {
      const head = ASSIGNMENT.exec(line);
      if (head === null) throw new ClassAdSyntaxError(text, offset, 'Name = expression', `'${trimmed.slice(0, 20)}'`);
      const [before = '', name = ''] = head;
      const body = line.slice(before.length).replace(/\r$/, '');
      const expr = new Parser(body, OLD, text, offset + before.length).wholeExpression();
      ad.setExpr(name.startsWith("'") ? name.slice(1, -1) : name, expr);
    }
    offset += line.length + 1;
  }
  return ad;
}

const MAX_CACHED = 500;
const CACHE = new Map<string, Expr | null>();

/** The expression that eval() runs; `undefined` if it does not parse. The latest ones are cached in compiled form. */
export function parseCached(text: string, old: boolean): Expr | undefined {
  const key = `${old ? 'o' : 'n'}${text}`;
  const known = CACHE.get(key);
  if (known !== undefined) return known === null ? undefined : known;
  if (CACHE.size >= MAX_CACHED) CACHE.clear();
  const expr = tryParse(text, old ? NEW_IN_OLD : NEW);
  if (text.length < 10_000) CACHE.set(key, expr ?? null);
  return expr;
}

function tryParse(text: string, dialect: Dialect): Expr | undefined {
  try {
    return new Parser(text, dialect).wholeExpression();
  } catch (thrown) {
    if (thrown instanceof ClassAdSyntaxError) return undefined;
    throw thrown;
  }
}
