import { expect, test } from 'vitest';
import { evaluate } from './oracle.ts';

/**
 * Answers of HTCondor's library, 25.14: the expression, as its tools print it, and in its strict mode if that differs.
 */
test.each<[string, string, string?]>([
  ['regexpMember(1,undefined)', 'undefined'],
  ['regexpMember(1,{"a"})', 'error'],
  ['regexpMember("a",{"b"},1)', 'error'],
  ['regexpMember(undefined,{"b"},1)', 'undefined'],
  ['pow(1.1,100)', '13780.61233982238', '1.378061233982238E+04'],
  ['pow(8.9,65)', '5.132753784935383E+61'],
  ['pow(1.5,1000)', '1.233840596906174E+176'],
  ['pow(0.0001,64)', '1.000000000000003E-256'],
  ['evalInEachContext(relTime(-1.5),{[a=1]})', '{ relTime("-01") }'],
  ['evalInEachContext(relTime(1.5),{[a=1]})[0]', '1.0', '1.000000000000000E+00'],
  ['absTime(0.0,-2147483648)', 'absTime("1901-12-13T20:45:52--596523:-14")'],
  ['getDayOfYear(absTime("0001-01-02"))', '1'],
  ['formatTime(99999999999999)', '"Sat Nov  7 09:46:39 3170843"'],
  ['formatTime(-62135596800,"%C %s %j %G")', '"0 -62135596800 001 1"'],
  ['formatTime(0,"%Z|%-5H|%#p|%#Z|%^P|%#c")', '"UTC|    0|am|utc|am|Thu Jan  1 00:00:00 1970"'],
  ['formatTime(0,"%OY|%Oy|%EY|%Ed|%Od|%EB|%OB")', '"%OY|70|1970|%Ed|01|%EB|January"'],
  ['formatTime([Year=2020;Month=13;Day=40],"%G %V %g")', '"2021 06 21"'],
  ['formatTime([Year=-5;Month=0;Day=-3],"%u %U")', '"2 -3"'],
  ['replaceall("[.]*?(?<!a)","o.ba","-")', '"-o--b-a"'],
  ['regexp("[a-c]{,2}","abc")', 'false'],
  // random() of a negative number is an evaluation that fails; only these functions do not propagate that.
  ['stringListsIntersect("a",random(-5))', 'error'],
  ['userHome("a",random(-5))', 'undefined'],
  ['evalInEachContext("a",{random(-5)})', '{ error }'],
  ['regexpMember("a",{"b",random(-5)})', 'error'],
  ['strcat("a",random(-5))', 'EVAL_FAILED'],
])('%s', (expr, old, strict = old) => {
  const question = { expr, ad: null, target: null, kind: 'eval' } as const;
  expect([evaluate(question, 'old'), evaluate(question, 'new')]).toEqual([old, strict]);
});

test('the ad around a match is shown with its sides', () => {
  const context = (mine: string, other: string) =>
    `[ ad = .${mine}; my = .${mine}; other = .${other}; target = .${other} ]`;
  expect(evaluate({ expr: 'root', ad: '[a=1]', target: '[b=2]', kind: 'eval' }, 'old')).toBe(
    `[ lCtx = ${context('LEFT', 'RIGHT')}; LEFT = [ a = 1 ]; rCtx = ${context('RIGHT', 'LEFT')}; RIGHT = [ b = 2 ]; ` +
      'leftRankValue = LEFT.rank; rightRankValue = RIGHT.rank; symmetricMatch = RIGHT.requirements && ' +
      'LEFT.requirements; leftMatchesRight = RIGHT.requirements; rightMatchesLeft = LEFT.requirements ]',
  );
});
