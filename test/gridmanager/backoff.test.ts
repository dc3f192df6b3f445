import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Breaker } from '../../src/gridmanager/breaker.ts';
import { LearnedLimit } from '../../src/gridmanager/learned-limit.ts';
import { SiteBackoff } from '../../src/gridmanager/backoff.ts';
import type { Report } from '../../src/site/contract.ts';

describe('a limit that a site teaches', () => {
  it('is none until the site refused, and then what it had taken', () => {
    const limit = new LearnedLimit(undefined, 0);
    expect(limit.available(1000, 0)).toBe(Number.POSITIVE_INFINITY);
    limit.taken(4, 0);
    limit.refused(4, 'only 4 jobs are allowed', 0);
    expect(limit.learned).toEqual({ cap: 4, message: 'only 4 jobs are allowed', at: 0 });
    expect(limit.available(4, 1000)).toBe(0);
    expect(limit.waitMs(4, 1000)).toBeGreaterThan(0);
  });

  it('leaves a place that was freed just now alone for a moment, longer where the site still counts it', () => {
    const limit = new LearnedLimit(undefined, 0);
    limit.refused(4, 'full', 0);
    expect(limit.available(3, 10_000)).toBe(0);
    expect(limit.available(3, 12_000)).toBe(1);
    limit.refused(3, 'full', 12_000);
    expect(limit.learned?.cap).toBe(4);
    expect(limit.available(3, 14_000)).toBe(0);
    expect(limit.available(3, 16_000)).toBe(1);
  });

  it('is probed gently upward, and rarer where that is refused', () => {
    const limit = new LearnedLimit(undefined, 0);
    limit.refused(4, 'full', 0);
    expect(limit.available(4, 30_000)).toBe(1);
    limit.refused(4, 'full', 30_000);
    expect(limit.available(4, 60_000)).toBe(0);
    expect(limit.available(4, 90_000)).toBe(1);
    limit.taken(5, 90_000);
    expect(limit.learned?.cap).toBe(5);
    expect(limit.available(5, 95_000)).toBe(2);
    limit.taken(7, 95_000);
    expect(limit.available(7, 100_000)).toBe(4);
  });

  it('is known to the next process, for an hour', () => {
    const learned = { cap: 4, message: 'full', at: 0 };
    expect(new LearnedLimit(learned, 60_000).available(4, 60_000)).toBe(0);
    expect(new LearnedLimit(learned, 4_000_000).available(4, 4_000_000)).toBe(Number.POSITIVE_INFINITY);
  });

  it('does not wait for ever when the clock was set back', () => {
    const limit = new LearnedLimit(undefined, 10 ** 12);
    limit.refused(4, 'full', 10 ** 12);
    expect(limit.waitMs(4, 0)).toBeLessThanOrEqual(600_000);
  });

  it('gets every job through a site of any size, however late it counts, with few refusals', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 500, max: 20_000 }),
        fc.integer({ min: 0, max: 5000 }),
        (size, jobs, runs, lag) => {
          const limit = new LearnedLimit(undefined, 0);
          let left = jobs;
          let refusals = 0;
          // When each job ends, as we learn it; the site counts it for `lag` longer.
          let ends: number[] = [];
          for (let now = 0; left > 0 || ends.some((end) => end > now); now += 500) {
            expect(now).toBeLessThan(3_600_000);
            ends = ends.filter((end) => end + lag > now);
            const there = (): number => ends.filter((end) => end > now).length;
            const free = Math.min(left, limit.available(there(), now));
            const fits = Math.min(free, size - ends.length);
            for (let i = 0; i < fits; i++) ends.push(now + runs);
            left -= Math.max(0, fits);
            if (fits > 0) limit.taken(there(), now);
            if (fits < free) {
              refusals += 1;
              limit.refused(there(), 'full', now);
            }
          }
          expect(refusals).toBeLessThanOrEqual(5 + jobs);
        },
      ),
    );
  });
});

describe('the circuit breaker', () => {
  it('takes a site out of use that fails again and again, and sends one job to see', () => {
    const breaker = new Breaker();
    for (let i = 0; i < 5; i++) expect(breaker.failed(1, 'its node failed', 0)).toBe(false);
    expect(breaker.available(0)).toBe(Number.POSITIVE_INFINITY);
    expect(breaker.failed(1, 'its node failed', 0)).toBe(true);
    expect(breaker.open).toEqual({ message: 'its node failed', probeAt: 60_000, probing: false });
    expect(breaker.available(59_000)).toBe(0);
    expect(breaker.available(60_000)).toBe(1);
    breaker.sent(60_000);
    expect(breaker.available(60_000)).toBe(0);
    breaker.failed(1, 'again', 61_000);
    expect(breaker.available(61_000 + 119_000)).toBe(0);
    expect(breaker.available(61_000 + 120_000)).toBe(1);
    expect(breaker.succeeded()).toBe(true);
    expect(breaker.available(0)).toBe(Number.POSITIVE_INFINITY);
  });

  it('forgives failures between which jobs end', () => {
    const breaker = new Breaker();
    for (let i = 0; i < 100; i++) {
      breaker.failed(5, 'x', i);
      breaker.succeeded();
    }
    expect(breaker.open).toBeUndefined();
  });

  it('is as an earlier process left it', () => {
    const breaker = new Breaker({ message: 'its node failed', probeAt: 60_000, probing: false });
    expect(breaker.available(59_000)).toBe(0);
    expect(breaker.available(60_000)).toBe(1);
    breaker.sent(60_000);
    expect(breaker.open).toMatchObject({ probing: true });
    breaker.failed(1, 'again', 61_000);
    expect(breaker.available(62_000)).toBe(0);
    expect(breaker.succeeded()).toBe(true);
    expect(breaker.open).toBeUndefined();
  });

  it('is not opened by one bad moment of many jobs, nor kept open longer by what failed before', () => {
    const breaker = new Breaker();
    expect(breaker.failed(1000, 'a node died', 0)).toBe(false);
    breaker.failed(1000, 'a node died', 1);
    for (let i = 0; i < 10; i++) breaker.failed(10, 'late news', 2);
    expect(breaker.available(60_001)).toBe(1);
  });
});

describe('backoff', () => {
  const ended = (cause: 'node-fail' | 'cancelled' | 'timeout'): Report => ({
    key: 'a.1.0.1',
    is: 'ended',
    how: { kind: 'by-site', cause, message: 'NODE_FAIL' },
  });
  const good: Report = { key: 'a.1.0.1', is: 'ended', how: { kind: 'exited', code: 1 } };

  it('tell what is new, once, and blame the site for its own failures alone', async () => {
    const told: object[] = [];
    const backoff = new SiteBackoff(undefined, 0, async (view) => void told.push(view));
    for (let i = 0; i < 20; i++) await backoff.heard([ended('cancelled'), ended('timeout')], 0);
    expect(backoff.available(0, 0)).toBe(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 20; i++) await backoff.heard([ended('node-fail')], 0);
    expect(backoff.available(0, 0)).toBe(0);
    const message = 'The node that ran it failed (NODE_FAIL)';
    expect(told).toEqual([{ outOfUse: { message, probeAt: 60_000, probing: false } }]);
    await backoff.heard([good], 0);
    expect(backoff.available(0, 0)).toBe(Number.POSITIVE_INFINITY);
    expect(told.at(-1)).toEqual({});
  });
});
