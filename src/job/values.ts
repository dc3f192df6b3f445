import {
  ClassAd,
  ClassAdSyntaxError,
  ErrorValue,
  type Expr,
  evaluate,
  ListValue,
  parseExpr,
  parseWholeExpr,
  printValue,
  Real,
  type Value,
} from '../classad/api.ts';
import { GryphusError } from '../errors.ts';
import { Attrs, type AttrTexts, withAttrs } from './attrs.ts';

/** Anything that provides the expression texts of attributes by name. */
export interface TextSource {
  get(name: string): string | undefined;
}

/** A string as expression text, in the old ClassAd syntax that the queue stores. */
export function quoted(text: string): string {
  return printValue(text, 'old');
}

/** The attributes of one layer, by names as they are spelled there. */
export function inAd(texts: AttrTexts): TextSource {
  return { get: (name) => texts[name] ?? undefined };
}

/** The attribute's value if it is a string; most are literals and are read without a parser. */
export function readString(source: TextSource, name: string): string | undefined {
  const text = source.get(name);
  if (text === undefined) return undefined;
  if (/^"[^"\\]*"$/.test(text)) return text.slice(1, -1);
  const value = valueOf(source, text);
  return typeof value === 'string' ? value : undefined;
}

/** The attribute's value if it is a number, or a boolean as 0 or 1. */
export function readNumber(source: TextSource, name: string): number | undefined {
  const text = source.get(name);
  if (text === undefined) return undefined;
  if (/^-?\d{1,15}(\.\d+)?$/.test(text)) return Number(text);
  const value = valueOf(source, text);
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value);
  return value instanceof Real ? value.value : undefined;
}

export function readBoolean(source: TextSource, name: string): boolean | undefined {
  const text = source.get(name);
  if (text === undefined) return undefined;
  if (/^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  return condition(valueOf(source, text));
}

/**
 * Whether a policy expression is true in a job's ad with pending changes; as in HTCondor, numbers count (0 is false).
 * `undefined`: undefined or an error.
 */
export function truthOf(attrs: Attrs, name: string, about: AttrTexts = {}): boolean | undefined {
  const text = attrs.get(name);
  if (text === undefined) return undefined;
  if (/^(true|false)$/i.test(text)) return text.toLowerCase() === 'true';
  return condition(evaluate(expression(text), { my: viewOf(withAttrs(attrs, about)) }));
}

/** The value of an expression in a job's ad, as text; `undefined` if it has none. */
export function valueText(attrs: Attrs, text: string): string | undefined {
  const value = evaluate(expression(text), { my: viewOf(attrs) });
  return value === undefined || value instanceof ErrorValue ? undefined : printValue(value, 'old');
}

export type ValueKind = 'string' | 'number' | 'boolean' | 'undefined' | 'error' | 'list' | 'other';

/**
 * The type of an expression's value in a job's ad with the changes `about`; `missing`: the expression is just the name
 * of an attribute that does not exist.
 */
export function whatItIs(
  attrs: Attrs,
  text: string,
  about: AttrTexts,
): { readonly kind: ValueKind; readonly missing?: string } {
  const value = evaluate(expression(text), { my: viewOf(withAttrs(attrs, about)) });
  const bare = /^(?:MY\.)?([A-Za-z_]\w*)$/i.exec(text.trim())?.[1];
  if (value === undefined && bare !== undefined && !/^undefined$/i.test(bare))
    return { kind: 'undefined', missing: bare };
  return { kind: kindOf(value) };
}

function kindOf(value: Value): ValueKind {
  if (value === undefined) return 'undefined';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'number' || typeof value === 'bigint' || value instanceof Real) return 'number';
  return value instanceof ErrorValue ? 'error' : value instanceof ListValue ? 'list' : 'other';
}

/**
 * A job's ad for matchmaking, chained to its cluster's, which is built once for all jobs of the cluster. What hides an
 * attribute of the cluster is undefined.
 */
export function adOf(attrs: Attrs): ClassAd {
  const ad = new ClassAd();
  for (const [name, text] of Object.entries(attrs.own)) ad.setExpr(name, expression(text ?? 'undefined'));
  if (attrs.parent) ad.chainTo(sharedAd(attrs.parent));
  return ad;
}

export type ClassAdPredicate = (attrs: Attrs) => boolean;

/**
 * Compiles a constraint into a test for jobs. A malformed one is 'bad-input'; the message says where (`where` and the
 * column) and what was expected.
 */
export function compileConstraint(text: string, where: string): ClassAdPredicate {
  const expr = wholeExpr(text, where, 'For example: JobStatus == 5 && Owner == "jane"');
  return (attrs) => condition(evaluate(expr, { my: viewOf(attrs) })) === true;
}

/** Throws 'bad-input' if an attribute's value is not a ClassAd expression. */
export function checkExpression(text: string, name: string): void {
  wholeExpr(text, `The value of ${name}`, 'It must be a ClassAd expression; strings need double quotes.');
}

function wholeExpr(text: string, where: string, remedy: string): Expr {
  try {
    return parseWholeExpr(text);
  } catch (thrown) {
    if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
    throw new GryphusError('bad-input', `${where}: ${thrown.message}`, { suggestions: [remedy] });
  }
}

const shared = new WeakMap<Attrs, ClassAd>();

function sharedAd(attrs: Attrs): ClassAd {
  let ad = shared.get(attrs);
  if (!ad) {
    ad = adOf(attrs);
    shared.set(attrs, ad);
  }
  return ad;
}

/** Expressions repeat, so each text is parsed once. */
const parsed = new Map<string, Expr>();
const REMEMBERED = 5000;

function expression(text: string): Expr {
  let expr = parsed.get(text);
  if (!expr) {
    expr = parseStored(text);
    if (parsed.size >= REMEMBERED) parsed.clear();
    parsed.set(text, expr);
  }
  return expr;
}

/**
 * Expressions were checked on entering the queue; a text from elsewhere that does not parse counts as an error value.
 */
function parseStored(text: string): Expr {
  try {
    return parseExpr(text, 'old');
  } catch (thrown) {
    if (thrown instanceof ClassAdSyntaxError) return parseExpr('error', 'old');
    throw thrown;
  }
}

function valueOf(source: TextSource, text: string) {
  return evaluate(expression(text), source instanceof Attrs ? { my: viewOf(source) } : {});
}

/** The same ad for one evaluation, which needs few of its attributes. */
function viewOf(attrs: Attrs): ClassAd {
  return ClassAd.reading({
    find(key) {
      const text = attrs.get(key);
      return text === undefined ? undefined : expression(text);
    },
    *entries() {
      for (const [name, text] of attrs) yield [name, expression(text)];
    },
  });
}

function condition(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value) !== 0;
  return value instanceof Real ? value.value !== 0 : undefined;
}
