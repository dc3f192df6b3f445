import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Gathered } from '../../src/util/gathered.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('does at once what is wanted first, and what comes within the moment together at its end', () => {
  let done = 0;
  const gathered = new Gathered(() => (done += 1), 15);
  gathered.want();
  expect(done).toBe(1);
  gathered.want();
  gathered.want();
  expect(done).toBe(1);
  vi.advanceTimersByTime(15);
  expect(done).toBe(2);
  vi.advanceTimersByTime(15);
  expect(done).toBe(2);
  gathered.want();
  expect(done).toBe(3);
});

it('does nothing any more once it has ended', () => {
  let done = 0;
  const gathered = new Gathered(() => (done += 1), 15);
  gathered.want();
  gathered.want();
  gathered.end();
  vi.advanceTimersByTime(100);
  expect(done).toBe(1);
});
