import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  ClassAd,
  ClassAdSyntaxError,
  fromJson,
  fromXml,
  parseAd,
  parseOldAd,
  printAd,
  Real,
  toJson,
  toXml,
  XML_FOOTER,
  XML_HEADER,
} from '../../src/classad/api.ts';

function recorded(form: 'l' | 'json' | 'xml'): string {
  return readFileSync(new URL(`../fixtures/classad-forms/job.${form}`, import.meta.url), 'utf8').trim();
}

const JOB = recorded('l');

test('condor_q -l: what was printed is read and printed the same', () => {
  expect(printAd(parseOldAd(JOB)).trim()).toBe(JOB);
});

test('condor_q -json and -xml of the same job', () => {
  const job = parseOldAd(JOB);
  expect(`[\n${toJson(job)}\n]`).toBe(recorded('json'));
  expect((XML_HEADER + toXml(job) + XML_FOOTER).trim()).toBe(recorded('xml'));
});

test('JSON and XML read back to the same ad', () => {
  expect(printAd(fromJson(recorded('json').slice(1, -1))).trim()).toBe(JOB);
  expect(fromXml(recorded('xml')).map((ad) => printAd(ad).trim())).toEqual([JOB]);
});

const ODD =
  '[ s = "a\\"b\\\\<&>\\n\\351é\\001"; l = { 1, [ x = y + 1; z = "<" ], {} }; e = error; u = undefined; r = 0.1; ' +
  'big = 9223372036854775807; t = absTime("2020-01-01T00:00:00+02:00"); d = relTime("1+02:03:04.5"); n = real("NaN"); ' +
  '\'a b\' = true; c = a is undefined && "x" < b ]';

test('every kind of value survives JSON and XML', () => {
  const ad = parseAd(ODD);
  expect(printAd(fromJson(toJson(ad)))).toBe(printAd(ad));
  expect(printAd(fromJson(toJson(ad, { oneLine: true })))).toBe(printAd(ad));
  expect(fromXml(toXml(ad)).map(printAd)).toEqual([printAd(ad)]);
});

test('numbers keep their type and their 64 bits', () => {
  const ad = ClassAd.fromValues({ i: 1, r: new Real(1), b: 2n ** 63n - 1n });
  expect(toJson(ad, { oneLine: true })).toBe('{"b": 9223372036854775807,"i": 1,"r": 1.0}');
  expect(toXml(ad)).toContain('<r>1.000000000000000E+00</r>');
});

test.each([
  ['{"a": }', 7, 'a value'],
  ['{"a": 1', 8, "',' or '}'"],
  ['{"a": "\\/Expr(1 +)\\/"}', 7, 'a value, a name or a bracket'],
])('bad JSON names its place: %s', (text, column, expected) => {
  const thrown = caught(() => fromJson(text));
  expect(thrown).toMatchObject({ line: 1, column, expected });
});

test('bad XML and bad lines name their place', () => {
  expect(caught(() => fromXml('<c>\n<a n="x"><i>1</a></c>'))).toMatchObject({ line: 2, column: 10 });
  expect(caught(() => parseOldAd('A = 1\nB = (2\n'))).toMatchObject({
    line: 2,
    column: 7,
    expected: "an operator or ')'",
  });
  expect(caught(() => parseOldAd('A = 1\n\nno assignment'))).toMatchObject({ line: 3, column: 1 });
});

function caught(run: () => unknown): ClassAdSyntaxError {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof ClassAdSyntaxError) return thrown;
    throw thrown;
  }
  throw new Error('nothing was thrown');
}
