import { describe, expect, it } from 'vitest';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';
import { SimFlock, SimPool } from './sim-flock.ts';

/** The sizes of the flock of 1994; each pool has an agreement with the largest, and with its neighbours on the map. */
const SIZES = [200, 30, 10, 10, 4, 3, 3, 3, 3];

/** The time until the last of the jobs would end in one pool of all machines. */
function merged(stations: number, jobs: readonly { readonly at: number; readonly seconds: number }[]): number {
  const free = Array.from({ length: stations }, () => 0);
  let last = 0;
  for (const { at, seconds } of jobs) {
    let first = 0;
    for (const [i, time] of free.entries()) if (time < (free[first] ?? 0)) first = i;
    free[first] = Math.max(at, free[first] ?? 0) + seconds;
    last = Math.max(last, free[first] ?? 0);
  }
  return last;
}

describe('nine simulated pools over the real central managers', () => {
  it.runIf(SLOW)(
    'run 1,000 jobs of three of them: none lost, none doubled, nearly as fast as one pool of all',
    async () => {
      const random = seeded(1994);
      const flock = new SimFlock();
      const pools = SIZES.map((size, i) => new SimPool(flock, `p${i}`, size));
      for (const [i, a] of pools.entries())
        for (const [j, b] of pools.entries()) if (i < j && (i === 0 || i === 1 || j - i === 1)) flock.agree(a, b);
      const jobs: { at: number; seconds: number }[] = [];
      const from = [pools[2], pools[4], pools[6]];
      for (let batch = 0; batch < 10; batch++) {
        from[batch % 3]?.submit(100, () => {
          const seconds = 1800 + Math.floor(random() * 5400);
          jobs.push({ at: flock.now, seconds });
          return seconds;
        });
        await flock.run(() => false, 600);
      }
      // The owner of the largest pool, whose machines are lent, has jobs of its own.
      const big = pools[0] as SimPool;
      const before = flock.now;
      big.submit(50, () => 60);
      await flock.run(() => [...big.jobs.values()].every(({ startedAt }) => startedAt !== undefined), 3600);
      const waited = flock.now - before;
      await flock.run(() => pools.every(({ isDone }) => isDone), 200_000);
      const all = pools.flatMap((pool) => [...pool.jobs.values()]);
      const ideal = merged(
        SIZES.reduce((sum, size) => sum + size, 0),
        jobs,
      );
      const lost = all.filter(({ ends }) => ends === 0).length;
      const doubled = all.filter(({ ends }) => ends > 1).length;
      const twice = [...flock.starts.values()].filter((times) => times > 1).length;
      process.stderr.write(
        `makespan ${flock.now} s, merged ${ideal} s: ${(flock.now / ideal).toFixed(3)}; own jobs started in ${waited} s\n`,
      );
      expect({ jobs: all.length, lost, doubled, twice }).toEqual({ jobs: 1050, lost: 0, doubled: 0, twice: 0 });
      expect(waited).toBeLessThanOrEqual(60);
      expect(flock.now / ideal).toBeLessThan(1.1);
    },
    300_000,
  );

  it('keep their balance within its slack over a day', async () => {
    const flock = new SimFlock();
    const [a, b] = [new SimPool(flock, 'a', 1), new SimPool(flock, 'b', 8)];
    flock.agree(a, b, { balance: 'day', slack: 5, max: 4 });
    a.submit(600, () => 600);
    await flock.run(() => false, 82_800);
    const { lent, borrowed } = b.balances.get('a')?.over('day', flock.now) ?? { lent: 0, borrowed: 0 };
    process.stderr.write(`lent ${lent.toFixed(2)}, borrowed ${borrowed.toFixed(2)} core hours\n`);
    expect(lent).toBeGreaterThan(4);
    // What ran when the slack was used up may end: four jobs of ten minutes.
    expect(lent - borrowed).toBeLessThanOrEqual(5 + 4 / 6);
  }, 120_000);
});
