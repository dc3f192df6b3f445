import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { armCrash } from '../../src/util/crash-point.ts';
import { JOURNAL_POINTS, seeThrough } from './see-through.ts';
import { TwoSides } from './two-sides.ts';

const KEY: AttemptKey = 'agent.1.0.1';

afterEach(() => armCrash(undefined));

describe('a job that is lent', () => {
  it('runs once at the partner, and its end comes home', async () => {
    const two = new TwoSides();
    await seeThrough(two, two, KEY);
    expect(two.endOf(KEY)).toEqual({ kind: 'exited', code: 0 });
    expect(two.pool.starts.get(KEY)).toBe(1);
    two.forget(KEY);
    await two.settle();
    expect([...two.pool.jobs.keys(), ...two.lender.jobs, ...two.borrower.jobs]).toEqual([]);
  });

  it.each(JOURNAL_POINTS)('runs once although a gateway dies at %s', async (point) => {
    const two = new TwoSides();
    armCrash(point);
    await seeThrough(two, two, KEY);
    expect(two.endOf(KEY)).toEqual({ kind: 'exited', code: 0 });
    for (let turn = 0; turn < 3; turn++) {
      // A worker that still holds it after coming back is told again.
      two.forget(KEY);
      await two.settle();
      two.connect();
      await two.settle();
    }
    expect(two.pool.starts.get(KEY)).toBe(1);
    // A drop is only on the way of a refused job.
    if (!point.endsWith('-drop')) expect(two.crashes).toBe(1);
    // What a crash left is cleared at the next connection.
    two.cut();
    two.connect();
    await two.settle();
    expect([...two.pool.jobs.keys()]).toEqual([]);
  });

  it('runs once through any two crashes and cuts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...JOURNAL_POINTS),
        fc.constantFrom(...JOURNAL_POINTS),
        fc.array(fc.constantFrom('cut', 'borrower', 'lender', 'none'), { minLength: 2, maxLength: 8 }),
        async (first, second, disturbances) => {
          const two = new TwoSides();
          armCrash(first);
          const left = [...disturbances];
          await seeThrough(two, two, KEY, () => {
            if (two.crashes === 1) armCrash(second);
            const one = left.shift();
            if (one === 'cut') two.cut();
            else if (one === 'borrower') two.startBorrower();
            else if (one === 'lender') two.startLender();
          });
          armCrash(undefined);
          expect(two.endOf(KEY)).toEqual({ kind: 'exited', code: 0 });
          expect(two.pool.starts.get(KEY)).toBe(1);
          expect(two.faults).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a job that is given back', () => {
  it('has not run at a partner that refused it', async () => {
    const two = new TwoSides();
    two.refusal = { clause: 'max', message: 'full' };
    two.grant(KEY);
    await two.settle();
    expect(two.isGone(KEY)).toBe(true);
    expect(two.refusals).toEqual(['max']);
    expect(two.pool.jobs.size).toBe(0);
  });

  it('cannot run there afterwards, although the partner had prepared it when the link was cut', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle(3, true);
    expect([...two.lender.jobs].map(({ phase }) => phase)).toEqual(['prepared']);
    two.cut();
    await two.settle();
    expect(two.isGone(KEY)).toBe(true);
    two.connect();
    await two.settle();
    two.pool.start(KEY);
    expect(two.pool.starts.size).toBe(0);
    expect([...two.lender.jobs]).toEqual([]);
  });

  it('is not given back while it may be running, however long the partner is away within the lease', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle();
    two.pool.start(KEY);
    await two.settle();
    two.cut();
    two.order({ t: 'cancel', key: KEY, how: 'remove', message: '' });
    two.borrower.tick('p', 600);
    await two.settle();
    expect(two.isGone(KEY) || two.endOf(KEY) !== undefined).toBe(false);
    two.borrower.tick('p', 661);
    await two.settle();
    expect(two.endOf(KEY)).toMatchObject({ kind: 'by-site', cause: 'node-fail' });
    // By then it has ended there: a third of the lease after the partner was last confirmed to hear.
    two.lender.tick('p', 601, () => undefined);
    expect(two.pool.jobs.get(KEY)).toMatchObject({ is: 'ended' });
  });

  it('is taken back from a partner that does not start it', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle();
    two.clock = 61_000;
    two.borrower.tick('p', 0);
    await two.settle();
    expect(two.isGone(KEY)).toBe(true);
    expect(two.refusals).toEqual(['start']);
    two.pool.start(KEY);
    expect(two.pool.starts.size).toBe(0);
  });

  it('is taken back after the link was down, which is not held against the partner', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle();
    two.cut();
    two.clock = 61_000;
    two.connect();
    two.borrower.tick('p', 0);
    await two.settle();
    expect(two.isGone(KEY)).toBe(true);
    expect(two.refusals).toEqual([]);
  });
});

describe('an agreement that does not allow a job any more', () => {
  it('ends it after its retirement', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle();
    two.pool.start(KEY);
    await two.settle();
    two.clock = 5000;
    two.lender.tick('p', 0, () => ({ clause: 'paused', message: '' }));
    await two.settle();
    expect(two.endOf(KEY)).toMatchObject({ kind: 'by-site', cause: 'preempted' });
  });
});

describe('an agreement that is removed by', () => {
  const running = async (): Promise<TwoSides> => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle();
    two.pool.start(KEY);
    await two.settle();
    return two;
  };

  it.each(['lender', 'borrower'] as const)('the %s has its jobs ended, and both sides know', async (side) => {
    const two = await running();
    expect(two[side].leave('p')).toBe(1);
    await two.settle();
    expect(two.endOf(KEY)).toMatchObject({ kind: 'by-site', cause: 'preempted' });
    expect(two.pool.jobs.get(KEY)).toMatchObject({ is: 'ended' });
    two.forget(KEY);
    await two.settle();
    expect(two[side].leave('p')).toBe(0);
  });

  it('the borrower gives back what has not been promised', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    expect(two.borrower.leave('p')).toBe(0);
    await two.settle();
    expect(two.isGone(KEY)).toBe(true);
    two.pool.start(KEY);
    expect(two.pool.starts.size).toBe(0);
  });

  it('the lender never runs what was only prepared', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle(3, true);
    expect(two.lender.leave('p')).toBe(1);
    await two.settle();
    expect(two.isGone(KEY)).toBe(true);
    two.pool.start(KEY);
    expect(two.pool.starts.size).toBe(0);
  });
});
