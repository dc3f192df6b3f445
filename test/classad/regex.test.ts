import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClassAd, ERROR, evaluate, parseExpr } from '../../src/classad/api.ts';
import { Regex } from '../../src/classad/regex/regex.ts';

const PLAIN = { caseless: false, multiline: false, dotAll: false, extended: false };

function find(pattern: string, subject: string): [number, number] | undefined {
  const match = Regex.compile(pattern, PLAIN)?.match(subject, 0, { steps: 1_000_000 });
  return match === undefined ? undefined : [match[0] ?? -1, match[1] ?? -1];
}

const atom = fc.constantFrom(
  'a',
  'b',
  'c',
  '.',
  '[ab]',
  '[^a]',
  '\\w',
  '\\d',
  '\\b',
  '^',
  '$',
  '(?:ab)',
  '(a|b)',
  '(b)',
  '(?=a)',
  '(?!b)',
  '(?<=a)',
  '\\.',
);
const quantifier = fc.constantFrom('', '', '', '*', '+', '?', '*?', '+?', '??', '{2}', '{1,2}', '{0,1}?', '{2,}');
const quantified = fc
  .tuple(atom, quantifier)
  .map(([part, times]) => (/[\^$]|\\b|\(\?[=!<]/.test(part) ? part : part + times));
const branch = fc.array(quantified, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''));
const pattern = fc.array(branch, { minLength: 1, maxLength: 3 }).map((branches) => branches.join('|'));
const subject = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '.', ' ', '1', 'A'), maxLength: 10 });

test('finds what the engine of the host language finds', () => {
  fc.assert(
    fc.property(pattern, subject, (source, text) => {
      const wanted = new RegExp(source, 's').exec(text);
      const flags = { ...PLAIN, dotAll: true };
      const got = Regex.compile(source, flags)?.match(text, 0, { steps: 1_000_000 });
      expect(got?.[0]).toBe(wanted?.index);
      expect(got === undefined ? undefined : text.slice(got[0], got[1])).toBe(wanted?.[0]);
    }),
    { numRuns: 5000 },
  );
});

test.each([
  ['(?i)ABC', 'xabc', [1, 4]],
  ['a(?i)b|c', 'C', [0, 1]],
  ['(a)(b)?\\1', 'aa', [0, 2]],
  ['(?<q>[\'"]).*?\\k<q>', `x'a"b'`, [1, 6]],
  ['(?P<n>a)(?P=n)', 'baa', [1, 3]],
  ['a++b', 'aaab', [0, 4]],
  ['a++ab', 'aaab', undefined],
  ['(?>a|ab)c', 'abc', undefined],
  ['(?<!x)y', 'xyzy', [3, 4]],
  ['[[:digit:][:space:]]+', 'ab1 2', [2, 5]],
  ['[]a]+', 'b]a', [1, 3]],
  ['[^]a]', ']ab', [2, 3]],
  ['\\Qa.b\\E+', 'a.bb', [0, 4]],
  ['\\x41\\101\\o{101}', 'AAA', [0, 3]],
  ['foo\\Kbar', 'foobar', [3, 6]],
  ['(a)?(?(1)b|c)', 'ab', [0, 2]],
  ['^(?(1)b|c)', 'c', undefined],
  ['(a(?#comment)b)', 'ab', [0, 2]],
  ['a$', 'a\n', [0, 1]],
  ['a\\z', 'a\n', undefined],
  ['\\R', '\r\n', [0, 2]],
  ['{2', '{2', [0, 2]],
  ['(a*)*', 'b', [0, 0]],
  ['(a|b)*?c', 'abc', [0, 3]],
  ['a{,2}', 'aa{,2}', [1, 6]],
  ['a(?#comment)+', 'baa', [1, 3]],
  ['(?|(a)|(b))\\1', 'abb', [1, 3]],
  ['\\p{Lu}\\P{L}\\pL', 'xA1b', [1, 4]],
  ['[\\p{Nd}x]+', 'a1x', [1, 3]],
  ['a\\Xb', 'a\r\nb', [0, 4]],
  ['[\\Q]-\\E]+', 'a]-', [1, 3]],
  ['[\\d-]+', 'a1-', [1, 3]],
])('%s on %s', (source, text, wanted) => {
  expect(find(source, text)).toEqual(wanted);
});

test.each([
  '(',
  'a)',
  '[a',
  '*a',
  'a**',
  'a{3,2}',
  '\\',
  '(?<=a*)b',
  '\\2',
  '[b-a]',
  '(?R)',
  '\\p{Lx}',
  '(?<n>a)(?<n>b)',
  '[[:nope:]]',
  '[:alpha:]',
  '[\\w-.]',
  '[a-\\d]',
  '^*',
  '\\b+',
  '{1}a',
  'a|{2}',
  '(?i)*a',
  'a{2}{3}',
  '((((a{999}){999}){999}){999})',
])('%s is refused: regexp() gives error', (source) => {
  expect(Regex.compile(source, PLAIN)).toBe(undefined);
  expect(evaluate(parseExpr('regexp(p, "x")'), { my: ClassAd.fromValues({ p: source }) })).toBe(ERROR);
});

test.each(['(a*)*b', '(a+)+$', '(a|aa)+$', '(.*)*x', '(?:a?){30}a{30}b', '^(([a-z])+.)+[A-Z]([a-z])+$', '(a*)*\\1b'])(
  '%s on a long run of a is stopped',
  (source) => {
    const started = performance.now();
    const value = evaluate(parseExpr(`regexp("${source}", "${'a'.repeat(5000)}!")`));
    expect([ERROR, false]).toContain(value);
    expect(performance.now() - started).toBeLessThan(5000);
  },
);

test('a list of such expressions shares one allowance', () => {
  const started = performance.now();
  const hard = `regexp("(a+)+$", "${'a'.repeat(40)}!")`;
  evaluate(parseExpr(Array.from({ length: 150 }, () => `(${hard} =?= error)`).join('&&')));
  expect(performance.now() - started).toBeLessThan(5000);
});

test('bytes, not characters, as the library counts', () => {
  expect(evaluate(parseExpr('regexp("^..$", "é")'))).toBe(true);
  expect(evaluate(parseExpr('regexps("(.)(.)", "é", "\\1\\2")'))).toBe('é');
  expect(evaluate(parseExpr('size("é")'))).toBe(2);
  expect(evaluate(parseExpr('strcat(substr("é",0,1),substr("é",1))'))).toBe('é');
});
