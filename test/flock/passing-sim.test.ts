import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { SimFlock, SimPool } from './sim-flock.ts';

/** Whether pools agree, each pair in the order 01, 02, … 12, …; and what they let be passed on. */
interface Terms {
  readonly hops: number;
  readonly forwarded: boolean;
}

/** Simulated pools over their real central managers, all of which pass on whatever their partners let them. */
function flockOf(sizes: readonly number[], agreed: (i: number, j: number) => Terms | undefined): SimFlock {
  const flock = new SimFlock();
  const pools = sizes.map((size, i) => new SimPool(flock, `p${i}`, size));
  const names = pools.map(({ name }) => name);
  for (const [i, a] of pools.entries())
    for (const [j, b] of pools.entries()) {
      const terms = i < j ? agreed(i, j) : undefined;
      if (terms) flock.agree(a, b, { ...terms, forward: names.filter((name) => name !== a.name && name !== b.name) });
    }
  return flock;
}

/** How all jobs ended, and how often any was started at the same try. */
function outcome(flock: SimFlock): { lost: number; doubled: number; twice: number } {
  const jobs = flock.pools.flatMap((pool) => [...pool.jobs.values()]);
  return {
    lost: jobs.filter(({ ends }) => ends === 0).length,
    doubled: jobs.filter(({ ends }) => ends > 1).length,
    twice: [...flock.starts.values()].filter((times) => times > 1).length,
  };
}

const NONE = { lost: 0, doubled: 0, twice: 0 };

it('jobs of the first of four pools in a line run in all of them, the nearest first', async () => {
  const flock = flockOf([0, 1, 1, 2], (i, j) => (j === i + 1 ? { hops: 3, forwarded: true } : undefined));
  const [first] = flock.pools as [SimPool];
  first.submit(12, () => 1800);
  await flock.run(() => first.isDone, 20_000);
  expect(outcome(flock)).toEqual(NONE);
  // Alone, the next pool would need 12 × 1,800 s, and the nearest two half of that.
  expect(flock.now).toBeLessThan(12 * 900);
});

it('jobs go no further than their home says', async () => {
  const flock = flockOf([0, 1, 1, 2], (i, j) => (j === i + 1 ? { hops: 0, forwarded: true } : undefined));
  const [first] = flock.pools as [SimPool];
  first.submit(4, () => 1800);
  await flock.run(() => first.isDone, 20_000);
  expect(outcome(flock)).toEqual(NONE);
  expect(flock.now).toBeGreaterThanOrEqual(4 * 1800);
});

it('in any flock that passes on whatever it may, each job ends once, and none goes round', async () => {
  const terms = fc.option(fc.record({ hops: fc.nat(3), forwarded: fc.boolean() }), { nil: undefined, freq: 2 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(2), { minLength: 3, maxLength: 5 }),
      fc.array(terms, { minLength: 10, maxLength: 10 }),
      fc.array(fc.nat(5), { minLength: 5, maxLength: 5 }),
      async (sizes, all, jobs) => {
        // Every pool has a machine, so that each job can end at home.
        const flock = flockOf(
          sizes.map((size) => size + 1),
          (i, j) => all[i * 3 + j - 1] ?? undefined,
        );
        for (const [i, pool] of flock.pools.entries()) pool.submit(jobs[i] ?? 0, () => 300 + 60 * i);
        await flock.run(() => flock.pools.every(({ isDone }) => isDone), 20_000);
        expect(outcome(flock)).toEqual(NONE);
      },
    ),
    { numRuns: SLOW ? 200 : 15 },
  );
}, 240_000);
