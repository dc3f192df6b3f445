import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Lull } from '../../src/scheduler/lull.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** When a loop that wants each two seconds to look for lost news came, in seconds. */
function loop(lull: Lull, stop: AbortSignal): number[] {
  const came: number[] = [];
  const run = async () => {
    while (!stop.aborted) {
      await lull.wait(() => lull.unlessQuiet(2000));
      came.push(Math.round(performance.now() / 100) / 10);
    }
  };
  void run();
  return came;
}

it('is longer once nothing has happened for a while, and over with the first event', async () => {
  const stop = new AbortController();
  const lull = new Lull(stop.signal);
  const came = loop(lull, stop.signal);
  await vi.advanceTimersByTimeAsync(14_000);
  expect(came.length).toBeGreaterThanOrEqual(6);
  came.length = 0;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(came.length).toBeLessThanOrEqual(8);
  const before = came.length;
  lull.stir();
  await vi.advanceTimersByTimeAsync(2500);
  expect(came.length).toBeGreaterThan(before);
  stop.abort();
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
});

it('of several loops ends for all at the same moment', async () => {
  const stop = new AbortController();
  const lull = new Lull(stop.signal);
  const one = loop(lull, stop.signal);
  await vi.advanceTimersByTimeAsync(700);
  const other = loop(lull, stop.signal);
  await vi.advanceTimersByTimeAsync(80_000);
  expect(other.at(-1)).toBe(one.at(-1));
  stop.abort();
});
