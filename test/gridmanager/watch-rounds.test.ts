import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WatchRounds } from '../../src/gridmanager/watch-rounds.ts';
import { type Deferred, deferred } from '../../src/util/deferred.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Rounds that end when the test says so. */
function watched(meetings: number) {
  const running: { readonly site: string; readonly over: Deferred<number | undefined> }[] = [];
  const begun: string[] = [];
  const rounds = new WatchRounds({
    meetings,
    round: (site) => {
      const over = deferred<number | undefined>();
      begun.push(site);
      running.push({ site, over });
      return over.promise;
    },
  });
  /** Ends the round that runs at a site, which wants the next in so many milliseconds. */
  async function over(site: string, again: number | undefined): Promise<void> {
    const at = running.findIndex((one) => one.site === site);
    running.splice(at, 1)[0]?.over.resolve(again);
    await vi.advanceTimersByTimeAsync(0);
  }
  return { rounds, begun, running: () => running.map(({ site }) => site), over };
}

it('waits at any number of sites for news, but meets only some at once', async () => {
  const { rounds, running, over } = watched(2);
  for (const site of ['a', 'b', 'c', 'd']) rounds.wake(site);
  await vi.advanceTimersByTimeAsync(0);
  expect(running()).toEqual(['a', 'b']);
  await over('a', 0);
  await over('b', 0);
  // Those that have answered wait for news, and leave their turns to others.
  expect(running().sort()).toEqual(['a', 'b', 'c', 'd']);
  // A site that does not answer has to be met again.
  await over('a', 1000);
  await vi.advanceTimersByTimeAsync(1000);
  expect(running().sort()).toEqual(['b', 'c', 'd']);
  await over('c', undefined);
  expect(running().sort()).toEqual(['a', 'b', 'd']);
});

it('runs one round of a site at a time, and one more if it was woken meanwhile', async () => {
  const { rounds, begun, over } = watched(2);
  rounds.wake('a');
  rounds.wake('a');
  rounds.wake('a');
  await over('a', undefined);
  expect(begun).toEqual(['a', 'a']);
  await over('a', undefined);
  expect([begun, rounds.size]).toEqual([['a', 'a'], 0]);
  rounds.wake('a');
  expect(begun).toEqual(['a', 'a', 'a']);
});

it('ends a pause when it is woken, and when it is over', async () => {
  const { rounds, begun, over } = watched(2);
  rounds.wake('a');
  await over('a', 60_000);
  await vi.advanceTimersByTimeAsync(59_000);
  expect(begun).toHaveLength(1);
  rounds.wake('a');
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toHaveLength(2);
  await over('a', 60_000);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(begun).toHaveLength(3);
});

it('begins nothing more when it is told to end, and waits for what runs', async () => {
  const { rounds, begun, over } = watched(1);
  for (const site of ['a', 'b']) rounds.wake(site);
  await over('a', 60_000);
  let closed = false;
  const closing = rounds.close().then(() => {
    closed = true;
  });
  rounds.wake('c');
  await vi.advanceTimersByTimeAsync(120_000);
  expect([begun, closed]).toEqual([['a', 'b'], false]);
  await over('b', 0);
  await closing;
  expect(begun).toEqual(['a', 'b']);
});
