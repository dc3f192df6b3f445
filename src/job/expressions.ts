import { ClassAdSyntaxError, type Expr, parseExpr, printExpr, Real } from '../classad/api.ts';
import { type Expressions, expressionJson } from './json-ads.ts';

/**
 * Lists and records become native JSON; other expressions are printed as HTCondor's tools print them there, reals in
 * full.
 */
export function expressions(): Expressions {
  const parsed = new Map<string, Expr | undefined>();
  const parse = (text: string) => {
    if (!parsed.has(text)) parsed.set(text, tryParse(text));
    return parsed.get(text);
  };
  return {
    json: (text) => {
      const expr = parse(text);
      return expr ? json(expr) : expressionJson(text);
    },
    text: (text) => {
      const expr = parse(text);
      return expr ? printExpr(expr, 'new') : text;
    },
  };
}

function tryParse(text: string): Expr | undefined {
  try {
    return parseExpr(text);
  } catch (thrown) {
    if (thrown instanceof ClassAdSyntaxError) return undefined;
    throw thrown;
  }
}

function json(expr: Expr): string {
  if (expr.kind === 'list') return `[${expr.items.map(json).join(', ')}]`;
  if (expr.kind === 'record')
    return `{${expr.attrs.map(([name, value]) => `${JSON.stringify(name)}: ${json(value)}`).join(', ')}}`;
  if (expr.kind === 'literal') {
    const { value } = expr;
    if (value === undefined) return 'null';
    if (typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
    if (typeof value === 'number' || typeof value === 'bigint') return String(value);
    if (value instanceof Real && Number.isFinite(value.value)) return printExpr(expr, 'old');
  }
  return expressionJson(printExpr(expr, 'new'));
}
