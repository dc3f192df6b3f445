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
  type Syntax,
  symmetricMatch,
  tryEvaluate,
} from '../../src/classad/api.ts';

const MATCHES = { symmetricMatch, leftMatchesRight, rightMatchesLeft };

interface Question {
  readonly expr: string;
  readonly ad: string | null;
  readonly target: string | null;
  readonly kind: 'eval' | 'unparse' | 'match';
}

/** Answers a case of the corpus in the corpus's format. */
export function evaluate({ expr, ad, target, kind }: Question, mode: Syntax): string {
  try {
    const my = ad === null ? new ClassAd() : parseAd(ad, mode);
    const other = target === null ? undefined : parseAd(target, mode);
    if (kind === 'match') return String(MATCHES[expr as keyof typeof MATCHES](my, other ?? new ClassAd(), { mode }));
    const tree = parseExpr(expr, mode);
    if (kind === 'unparse') return printExpr(tree, mode);
    const value = tryEvaluate(tree, { my, target: other, mode });
    return value instanceof EvalFailed ? 'EVAL_FAILED' : printValue(value, mode);
  } catch (thrown) {
    if (thrown instanceof ClassAdSyntaxError) return 'PARSE_ERROR';
    throw thrown;
  }
}
