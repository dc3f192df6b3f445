import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Demand, factory, LIMITS, type Supply } from '../../src/glidein/factory.ts';

const site = (name: string, more: Partial<Supply> = {}): Supply => ({
  site: name,
  most: 100,
  cores: 8,
  walltime: 14_400,
  open: true,
  waiting: [],
  running: 0,
  free: [],
  failures: 0,
  ...more,
});
const jobs = (idle: number, more: Partial<Demand> = {}): Demand => ({
  kind: 'sim',
  idle,
  cpus: 1,
  memoryMb: 128,
  ...more,
});
const starts = (demands: readonly Demand[], supplies: readonly Supply[], limits = LIMITS) =>
  Object.fromEntries(factory(demands, supplies, limits).start);

describe('the factory', () => {
  it('asks for what the idle jobs need, less what is free and what was asked for', () => {
    expect(starts([jobs(40)], [site('a')])).toEqual({ a: 5 });
    expect(starts([jobs(40)], [site('a', { waiting: [10, 10] })])).toEqual({ a: 3 });
    expect(starts([jobs(40)], [site('a', { running: 3, free: [{ cpus: 8 }, { cpus: 8 }] })])).toEqual({ a: 3 });
    expect(starts([jobs(5, { cpus: 8 })], [site('a')])).toEqual({ a: 5 });
    expect(starts([jobs(0)], [site('a')])).toEqual({});
  });

  it('floods several sites, the quickest first, and counts a stuck pilot for none', () => {
    const sites = [
      site('slow', { wait: 7200 }),
      site('quick', { wait: 30 }),
      site('new'),
      site('fourth', { wait: 9e5 }),
    ];
    expect(starts([jobs(16)], sites)).toEqual({ quick: 2, new: 2, slow: 2 });
    expect(starts([jobs(16)], [site('a', { waiting: [4000, 4000] })])).toEqual({ a: 2 });
    expect(starts([jobs(16)], [site('a', { waiting: [4000, 4000], wait: 3000 })])).toEqual({});
  });

  it('takes back what is no longer needed', () => {
    const { start, withdraw } = factory([jobs(8)], [site('a', { waiting: [1, 2, 3] }), site('b', { waiting: [5] })]);
    expect(Object.fromEntries(withdraw)).toEqual({ a: 2 });
    expect(start.size).toBe(0);
    expect(Object.fromEntries(factory([], [site('a', { waiting: [1, 9999] })]).withdraw)).toEqual({ a: 2 });
  });

  it('counts as free only what would run the job: a matching slot, large enough, for its whole run time', () => {
    const idle = (more: object = {}) =>
      site('idle', { running: 1, free: [{ cpus: 8, memoryMb: 2000, left: 3600, ...more }] });
    expect(starts([jobs(8)], [idle(), site('a')])).toEqual({});
    expect(starts([jobs(8, { refused: new Set(['idle']) })], [idle(), site('a')])).toEqual({ a: 1 });
    expect(starts([jobs(8, { memoryMb: 500 })], [idle(), site('a')])).toEqual({ a: 1, idle: 1 });
    expect(starts([jobs(8, { runSeconds: 4000 })], [idle(), site('a')])).toEqual({ a: 1, idle: 1 });
    // Four free cores on each of two pilots are not eight.
    const split = site('idle', { running: 2, free: [{ cpus: 4 }, { cpus: 4 }] });
    expect(starts([jobs(1, { cpus: 8 })], [split])).toEqual({ idle: 1 });
    // What one autocluster takes is not free for the next.
    expect(starts([jobs(8), jobs(8, { kind: 'other' })], [idle({ memoryMb: 9000 })])).toEqual({ idle: 1 });
  });

  it('asks no site whose pilots would not run the job, or have no GPUs for it', () => {
    const sites = [site('a'), site('b', { gpus: 2 })];
    expect(starts([jobs(8, { refused: new Set(['a']) })], sites)).toEqual({ b: 1 });
    expect(starts([jobs(4, { gpus: 1 })], sites)).toEqual({ b: 2 });
    expect(starts([jobs(8, { memoryMb: 4000 })], [site('a', { memoryMb: 8000 })])).toEqual({ a: 4 });
    expect(factory([jobs(4, { refused: new Set(['a', 'b']) })], sites).because).toEqual([
      'sim: no site has suitable pilots.',
    ]);
  });

  it('knows from what jobs took that one slot can do many', () => {
    expect(starts([jobs(1000, { runSeconds: 1 })], [site('a')])).toEqual({ a: 1 });
    expect(starts([jobs(1000, { runSeconds: 600 })], [site('a')])).toEqual({ a: 25 });
    expect(starts([jobs(10, { runSeconds: 14_000 })], [site('a')])).toEqual({});
  });

  it('leaves a site alone that does not answer or that pilots cannot run at, and says so', () => {
    const sites = [site('away', { open: false }), site('bad', { failures: 3 }), site('odd', { failures: 1 })];
    const { start, because } = factory([jobs(80)], sites);
    expect(Object.fromEntries(start)).toEqual({ odd: 1 });
    expect(because).toContain('away: it does not answer now.');
    expect(because).toContain('bad: 3 pilots could not run there within the hour.');
    expect(factory([jobs(1, { cpus: 64 })], sites).because).toEqual(['sim: no site has suitable pilots.']);
  });

  it('never goes over a limit, never starts and takes back at one site, and settles', () => {
    const anySite = fc.record({
      most: fc.nat(30),
      cores: fc.integer({ min: 1, max: 64 }),
      walltime: fc.integer({ min: 60, max: 100_000 }),
      open: fc.boolean(),
      waiting: fc.array(fc.nat(20_000), { maxLength: 20 }),
      running: fc.nat(20),
      wait: fc.option(fc.nat(10_000), { nil: undefined }),
      failures: fc.nat(4),
    });
    const anyJobs = fc.record({
      idle: fc.nat(5000),
      cpus: fc.integer({ min: 1, max: 64 }),
      runSeconds: fc.option(fc.nat(100_000), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(anySite, { maxLength: 6 }), fc.array(anyJobs, { maxLength: 4 }), (sites, demands) => {
        const supplies = sites.map(({ wait, ...one }, i) =>
          site(`s${i}`, { ...one, ...(wait === undefined ? {} : { wait }) }),
        );
        const wanted = demands.map(({ runSeconds, ...one }, i) =>
          jobs(one.idle, { ...one, kind: `k${i}`, ...(runSeconds === undefined ? {} : { runSeconds }) }),
        );
        const limits = { ...LIMITS, most: 60 };
        const plan = factory(wanted, supplies, limits);
        let total = supplies.reduce((sum, one) => sum + one.waiting.length + one.running, 0);
        for (const supply of supplies) {
          const more = plan.start.get(supply.site) ?? 0;
          const less = plan.withdraw.get(supply.site) ?? 0;
          total += more;
          expect(more > 0 && less > 0).toBe(false);
          expect(less).toBeLessThanOrEqual(supply.waiting.length);
          if (more > 0) expect(supply.waiting.length + supply.running + more).toBeLessThanOrEqual(supply.most);
          if (more > 0) expect(supply.open && supply.failures < 3).toBe(true);
        }
        if (plan.start.size > 0) expect(total).toBeLessThanOrEqual(limits.most);
        // What was just requested is not withdrawn in the next round.
        const next = supplies.map((one) => ({
          ...one,
          waiting: [...one.waiting, ...Array.from({ length: plan.start.get(one.site) ?? 0 }, () => 0)],
        }));
        const after = factory(wanted, next, limits);
        for (const name of plan.start.keys()) expect(after.withdraw.get(name)).toBeUndefined();
      }),
    );
  });
});
