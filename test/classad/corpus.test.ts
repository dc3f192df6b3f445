import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { evaluate } from './oracle.ts';

type Case = [
  expr: string,
  ad: string | null,
  target: string | null,
  kind: 'eval' | 'unparse' | 'match',
  old: string,
  strict: string,
];

const CASES = readFileSync(new URL('../fixtures/classad.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Case);

test('there are as many cases as the real library answered', () => {
  expect(CASES).toHaveLength(2448);
});

test.each(['old', 'new'] as const)("every answer of HTCondor's library, in its %s mode", (mode) => {
  const wrong = CASES.flatMap(([expr, ad, target, kind, old, strict]) => {
    const wanted = mode === 'old' ? old : strict;
    const got = evaluate({ expr, ad, target, kind }, mode);
    return got === wanted ? [] : [{ expr, ad, target, kind, wanted, got }];
  });
  expect(wrong).toEqual([]);
});
