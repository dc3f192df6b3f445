import { expect, it } from 'vitest';
import { plan, troubleAfter } from '../../src/scheduler/plan.ts';

const child = (identity: string) => ({ identity, pid: 1, startedAt: 0 });

it('starts one process for each identity that has work and none', () => {
  expect(plan(0, new Set(['a', 'b']), new Map([['a', child('a')]]), new Map())).toEqual([
    { do: 'start', identity: 'b' },
  ]);
});

it('starts one that keeps dying later and later, and forgets a healthy life', () => {
  const first = troubleAfter(undefined, false, 10, 1000);
  const second = troubleAfter(first, false, 10, 2000);
  expect(second).toEqual({ failures: 2, lastAt: 2000 });
  const troubles = new Map([['a', second ?? { failures: 0, lastAt: 0 }]]);
  expect(plan(2500, new Set(['a']), new Map(), troubles)).toEqual([{ do: 'wait', identity: 'a', untilMs: 4000 }]);
  expect(plan(4000, new Set(['a']), new Map(), troubles)).toEqual([{ do: 'start', identity: 'a' }]);
  expect(troubleAfter(second, false, 100_000, 5000)?.failures).toBe(1);
  expect(troubleAfter(second, true, 5, 5000)).toBeUndefined();
});

it('does not wait for ever when the clock was set back', () => {
  const troubles = new Map([['a', { failures: 3, lastAt: 10 ** 12 }]]);
  expect(plan(0, new Set(['a']), new Map(), troubles)).toEqual([{ do: 'start', identity: 'a' }]);
});
