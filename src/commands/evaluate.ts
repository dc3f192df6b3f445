import type { AdText } from '../index.ts';
import { unquote } from '../job/json-ads.ts';
import { lookup } from './show/ad.ts';
import type { Evaluate } from './show/autoformat.ts';

/** The evaluator behind -af. The ClassAd language is loaded only if -af is used. */
export async function evaluator(): Promise<Evaluate> {
  const { ClassAd, ClassAdSyntaxError, evaluate, parseExpr, printValue } = await import('../classad/api.ts');
  const parsed = new Map<string, ReturnType<typeof parseExpr> | undefined>();
  const parse = (text: string) => {
    if (!parsed.has(text)) {
      try {
        parsed.set(text, parseExpr(text));
      } catch (thrown) {
        if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
        parsed.set(text, undefined);
      }
    }
    return parsed.get(text);
  };
  const adOf = (texts: AdText) => {
    const ad = new ClassAd();
    for (const [name, text] of Object.entries(texts)) {
      const expr = parse(text);
      if (expr) ad.setExpr(name, expr);
    }
    return ad;
  };
  let last: readonly [AdText, InstanceType<typeof ClassAd>] | undefined;
  return (expression, texts, quoted) => {
    const literal = lookup(texts, expression);
    if (literal !== undefined && /^-?\d+$/.test(literal)) return literal;
    const string = literal === undefined ? undefined : unquote(literal);
    if (string !== undefined) return quoted ? (literal ?? '') : string;
    const expr = parse(expression);
    if (!expr) return 'error';
    if (last?.[0] !== texts) last = [texts, adOf(texts)];
    const value = evaluate(expr, { my: last[1] });
    return typeof value === 'string' && !quoted ? value : printValue(value, 'old');
  };
}
