import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ClassAd,
  ClassAdSyntaxError,
  ERROR,
  EvalFailed,
  evaluate,
  evaluateAttr,
  fromJson,
  fromXml,
  parseAd,
  parseExpr,
  parseOldAd,
  printAd,
  printExpr,
  printValue,
  type Syntax,
  toJson,
  toXml,
  tryEvaluate,
} from '../../src/classad/api.ts';
import { expressions, soup } from './arbitrary.ts';

const SLOW = process.env['GRYPHUS_SLOW'] === '1';
const MY = parseAd(
  '[ a = b + 1; b = TARGET.b; l = { 1, a, [ x = a ] }; s = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; loop = loop2; loop2 = loop ]',
);
const TARGET = parseAd('[ b = 2; c = TARGET.a; a = c; Memory = 1024 ]');

describe.each(['old', 'new'] as const)('the %s syntax', (syntax: Syntax) => {
  test('print ∘ parse is the identity on what is printed', () => {
    fc.assert(
      fc.property(expressions(syntax === 'old'), (expr) => {
        const text = printExpr(expr, syntax);
        expect(printExpr(parseExpr(text, syntax), syntax)).toBe(text);
      }),
      { numRuns: SLOW ? 50_000 : 1500 },
    );
  });

  test('what is parsed back evaluates to the same', () => {
    fc.assert(
      fc.property(expressions(syntax === 'old'), (expr) => {
        const scope = { my: MY, target: TARGET, now: 1, random: () => 0.5, mode: syntax };
        const again = parseExpr(printExpr(expr, syntax), syntax);
        expect(printValue(evaluate(again, scope), syntax)).toBe(printValue(evaluate(expr, scope), syntax));
      }),
      { numRuns: SLOW ? 50_000 : 1500 },
    );
  });
});

/** Parses, evaluates and prints; any error but a syntax error is a bug. */
function survive(text: string): void {
  for (const syntax of ['old', 'new'] as const) {
    try {
      const expr = parseExpr(text, syntax);
      const value = tryEvaluate(expr, { my: MY, target: TARGET, now: 1, mode: syntax });
      if (!(value instanceof EvalFailed)) printValue(value, syntax);
      printExpr(expr, syntax);
    } catch (thrown) {
      if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
      if (thrown.line < 1 || thrown.column < 1 || thrown.expected === '') throw thrown;
    }
  }
}

test(
  'nothing that is thrown at the language makes it throw or hang',
  () => {
    fc.assert(fc.property(soup, survive), {
      numRuns: SLOW ? 1_000_000 : 20_000,
      interruptAfterTimeLimit: 1_800_000,
      markInterruptAsFailure: true,
    });
  },
  SLOW ? 1_900_000 : 60_000,
);

test('nor do the readers of ads', () => {
  fc.assert(
    fc.property(fc.oneof(soup, fc.string()), (text) => {
      for (const read of [parseAd, parseOldAd, fromJson, fromXml]) {
        try {
          read(text);
        } catch (thrown) {
          if (!(thrown instanceof ClassAdSyntaxError)) throw thrown;
        }
      }
    }),
    { numRuns: SLOW ? 200_000 : 3000 },
  );
});

test('ads survive every form of print', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('A', 'b', 'Long_Name'), expressions(false)), { maxLength: 3 }),
      (attrs) => {
        const ad = new ClassAd();
        for (const [name, expr] of attrs) ad.setExpr(name, parseExpr(printExpr(expr, 'new'), 'new'));
        expect(toJson(fromJson(toJson(ad)))).toBe(toJson(ad));
        expect(fromXml(toXml(ad)).map(toXml)).toEqual([toXml(ad)]);
      },
    ),
    { numRuns: SLOW ? 20_000 : 800 },
  );
});

test.each([
  ['a long sum', Array.from({ length: 100_000 }, () => '1').join('+')],
  ['a long path', `a${'.a'.repeat(100_000)}`],
  ['many subscripts', `a${'[0]'.repeat(50_000)}`],
  ['a long condition', Array.from({ length: 50_000 }, () => 'a == 1').join(' && ')],
])('%s is parsed and printed, and too deep to evaluate', (_name, text) => {
  const expr = parseExpr(text);
  expect(printExpr(parseExpr(printExpr(expr)))).toBe(printExpr(expr));
  expect(evaluate(expr, { my: MY })).toBe(ERROR);
});

test('sums are followed to the depth that the library follows', () => {
  const sum = (terms: number) => parseExpr(Array.from({ length: terms }, () => '1').join('+'));
  expect(evaluate(sum(401))).toBe(401);
  expect(tryEvaluate(sum(402))).toBeInstanceOf(EvalFailed);
});

test('nesting beyond the limit is a syntax error', () => {
  expect(printExpr(parseExpr('('.repeat(165) + '1' + ')'.repeat(165)))).toHaveLength(331);
  expect(() => parseExpr('('.repeat(166) + '1' + ')'.repeat(166))).toThrow(ClassAdSyntaxError);
  expect(() => parseExpr('{'.repeat(100_000))).toThrow(ClassAdSyntaxError);
});

test('work that doubles at every step comes to an end', () => {
  const ad = new ClassAd().set('a0', 1);
  for (let at = 1; at < 60; at += 1) ad.setExpr(`a${at}`, parseExpr(`a${at - 1} + a${at - 1}`));
  expect(evaluateAttr(ad, 'a10')).toBe(1024);
  expect(evaluateAttr(ad, 'a59')).toBe(ERROR);
  const text = new ClassAd().set('s0', 'x'.repeat(1024));
  for (let at = 1; at < 40; at += 1) text.setExpr(`s${at}`, parseExpr(`strcat(s${at - 1}, s${at - 1})`));
  expect(evaluateAttr(text, 's39')).toBe(ERROR);
});

test('so does work on long strings and lists', () => {
  const started = performance.now();
  const ad = new ClassAd()
    .set('s', 'ab '.repeat(100_000))
    .setExpr('l', parseExpr(`{ ${Array.from({ length: 20_000 }, () => '1').join(',')} }`))
    .setExpr('x0', parseExpr('size(toUpper(s)) + sum(l) + stringListSize(s) + size(strcat(s, s)) + size(string(l))'));
  for (let at = 1; at < 40; at += 1) ad.setExpr(`x${at}`, parseExpr(`x${at - 1} + x${at - 1}`));
  expect(evaluateAttr(ad, 'x1')).toBe(2 * (300_000 + 20_000 + 100_000 + 600_000 + 40_003));
  expect(evaluateAttr(ad, 'x39')).toBe(ERROR);
  expect(performance.now() - started).toBeLessThan(60_000);
});

test('what is printed of an ad reads back', () => {
  expect(printAd(parseOldAd(printAd(MY)))).toBe(printAd(MY));
});
