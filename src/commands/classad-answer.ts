import {
  ClassAd,
  ClassAdSyntaxError,
  EvalFailed,
  leftMatchesRight,
  parseAd,
  parseExpr,
  printExpr,
  printValue,
  rightMatchesLeft,
  symmetricMatch,
  tryEvaluate,
} from '../classad/api.ts';
import { GryphusError } from '../errors.ts';

/** A question in the format used to compare ClassAd implementations. */
export interface Question {
  readonly expr: string;
  readonly ad: string | null;
  readonly target: string | null;
  readonly kind: 'eval' | 'unparse' | 'match';
}

const MATCHES = new Map(Object.entries({ symmetricMatch, leftMatchesRight, rightMatchesLeft }));

/** The answer, PARSE_ERROR, or EVAL_FAILED if the evaluation itself failed. */
export function answer({ expr, ad, target, kind }: Question, mode: 'old' | 'new'): string {
  try {
    const my = ad === null ? new ClassAd() : parseAd(ad, mode);
    const other = target === null ? undefined : parseAd(target, mode);
    const match = kind === 'match' ? MATCHES.get(expr) : undefined;
    if (match !== undefined) return String(match(my, other ?? new ClassAd(), { mode }));
    const tree = parseExpr(expr, mode);
    if (kind === 'unparse') return printExpr(tree, mode);
    const value = tryEvaluate(tree, { my, target: other, mode });
    return value instanceof EvalFailed ? 'EVAL_FAILED' : printValue(value, mode);
  } catch (thrown) {
    if (thrown instanceof ClassAdSyntaxError) return 'PARSE_ERROR';
    // The result is nested too deeply for this process, or its text is too long.
    if (thrown instanceof RangeError) return 'EVAL_FAILED';
    throw thrown;
  }
}

/** Parses a line of the input; a GryphusError 'bad-input' names an invalid line. */
export function readQuestion(text: string, line: number): Question {
  const wrong = (what: string) =>
    new GryphusError('bad-input', `line ${line}: ${what}.`, {
      suggestions: ['Write {"expr": "1+1", "ad": null, "target": null, "kind": "eval"}.'],
    });
  let raw: unknown;
  try {
    raw = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    throw wrong('not JSON');
  }
  const { expr, ad = null, target = null, kind = 'eval' } = (raw ?? {}) as Partial<Record<keyof Question, unknown>>;
  const isAd = (value: unknown): value is string | null => value === null || typeof value === 'string';
  if (typeof expr !== 'string') throw wrong('"expr" is not a string');
  if (!isAd(ad) || !isAd(target)) throw wrong('"ad" and "target" are strings or null');
  if (kind !== 'eval' && kind !== 'unparse' && kind !== 'match') throw wrong('"kind" is eval, unparse or match');
  return { expr, ad, target, kind };
}
