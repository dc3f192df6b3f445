import { expect, it } from 'vitest';
import { Flight } from '../../src/util/flight.ts';

/** A line with this many blocks a second and this latency: each answer's time grows with what is queued before it. */
function settled(perSecond: number, wayMs: number): { readonly most: number; readonly waitMs: number } {
  const flight = new Flight();
  const time = () => wayMs + (flight.most / perSecond) * 1000;
  for (let answer = 0; answer < 500; answer++) flight.answered(time());
  return { most: flight.most, waitMs: time() - wayMs };
}

it.each([
  ['a local disk', 2000, 1],
  ['a fast line around the world', 400, 300],
])('%s is used whole', (_what, perSecond, wayMs) => {
  expect(settled(perSecond, wayMs).most).toBe(64);
});

it('a slow line has no long queue', () => {
  expect(settled(8, 20).waitMs).toBeLessThan(1500);
});

it('has no more than its limit', () => {
  const flight = new Flight(8);
  for (let answer = 0; answer < 50; answer++) flight.answered(1);
  expect(flight.most).toBe(8);
});
