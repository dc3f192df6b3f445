import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { eachSecond, lookNow } from '../../src/util/each-second.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const second = (): number => Math.round(performance.now() / 1000);

it('calls all in the same seconds, each as often as it wants, and wakes for no others', () => {
  const called: string[] = [];
  const stops = [
    eachSecond(() => called.push(`a${second() % 10}`), { every: 10 }),
    eachSecond(() => called.push(`b${second() % 5}`), { every: 5 }),
  ];
  vi.advanceTimersByTime(20_500);
  expect(called.filter((one) => one === 'a0')).toHaveLength(2);
  expect(called.filter((one) => one === 'b0')).toHaveLength(4);
  expect(called).toHaveLength(6);
  // One timer, for the next second in which one of them is due.
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersToNextTimer();
  expect(second() % 5).toBe(0);
  for (const stop of stops) stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('what looks for news is called for news, too, but not more often than each second', () => {
  let looks = 0;
  let others = 0;
  const stops = [
    eachSecond(() => (looks += 1), { every: 60, withNews: true }),
    eachSecond(() => (others += 1), { every: 60 }),
  ];
  vi.advanceTimersByTime(1500);
  lookNow();
  lookNow();
  expect([looks, others]).toEqual([1, 0]);
  vi.advanceTimersByTime(1000);
  lookNow();
  expect([looks, others]).toEqual([2, 0]);
  for (const stop of stops) stop();
});
