import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isEnd } from '../../src/job/life.ts';
import type { Queue } from '../../src/queue/api.ts';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { World } from './protocol-world.ts';
import { CLEAR } from './simulated-site.ts';
import { seeded } from '../seeded.ts';

/** The points on the path of candidates, and of their jobs after one was granted. */
const POINTS: readonly CrashPoint[] = [
  'gm.before-prepare',
  'gm.after-prepare',
  'gm.saved-prepare',
  'gm.before-commit',
  'gm.after-commit',
  'gm.saved-commit',
  'gm.after-poll',
  'gm.before-grant',
  'gm.saved-grant',
  'gm.after-grant',
  'gm.saved-poll',
  'gm.before-cancel',
  'gm.after-cancel',
  'gm.saved-cancel',
  'gm.saved-fetch',
  'gm.saved-forget',
];
const SITES = ['second', 'third'];
/** Scenarios per test run; thousands find rare errors. */
const RUNS = Number(process.env['GRYPHUS_RUNS'] ?? 8);

describe('a flooded job: one job, several candidates, one start', () => {
  let redis: TestRedis;
  let queue: Queue;

  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(() => redis.stop());

  /** A GridManager dies at each point in turn, and the next one continues until its own death. */
  async function dieAt(points: readonly CrashPoint[]): Promise<void> {
    const world = new World(queue, seeded(7), CLEAR, SITES);
    world.crashAt(points);
    try {
      while (world.crashed < points.length) {
        const before = world.crashed;
        await world.submit(2, 'flooded');
        await world.until((jobs) => world.crashed > before || jobs.every(({ state }) => isEnd(state)));
      }
      await world.finish();
      expect(await world.broken()).toEqual([]);
    } finally {
      await world.end();
    }
  }

  it('runs once at one of three sites, and nothing is left at the others', async () => {
    const world = new World(queue, seeded(3), CLEAR, SITES);
    try {
      await world.submit(20, 'flooded');
      await world.finish();
      expect(await world.broken()).toEqual([]);
      const records = await world.records();
      expect(records.map(({ state }) => state)).toEqual(records.map(() => 'completed'));
      expect(new Set(records.map(({ site }) => site)).size).toBeGreaterThan(1);
    } finally {
      await world.end();
    }
  });

  it('continues after a death of the GridManager at every point', () => dieAt(POINTS), 120_000);

  it('starts where a site is cut off for ever: the others candidate on, and leave is not given to two', async () => {
    const world = new World(queue, seeded(11), CLEAR, SITES);
    try {
      // Else it may start and end between two looks.
      for (const site of world.sites.values()) site.full = true;
      const [id] = await world.submit(1, 'flooded');
      await world.until(
        async () => (await queue.candidates.of(id ? [id] : []))[0]?.open.some((b) => b.state === 'waiting') ?? false,
      );
      world.site.cut = true;
      for (const site of world.sites.values()) site.full = false;
      await world.until((jobs) => jobs.every(({ state }) => isEnd(state)));
      expect((await world.records()).map(({ site }) => site === 'there')).toEqual([false]);
      await world.finish();
      expect(await world.broken()).toEqual([]);
    } finally {
      await world.end();
    }
  });

  it('leaves nothing at a site that was slow to prepare what was withdrawn meanwhile', async () => {
    const world = new World(queue, seeded(5), CLEAR, SITES);
    let go: () => void = () => undefined;
    world.site.slow = new Promise((done) => {
      go = () => done();
    });
    try {
      await world.submit(2, 'flooded');
      const [job] = await world.submit(1);
      await world.until((jobs) => jobs.filter(({ site }) => site !== 'there').every(({ state }) => isEnd(state)));
      if (job) await world.act(job, 'remove');
      // The withdrawal takes its rounds while the record is on its way.
      for (let i = 0; i < 40; i++) await world.step();
      go();
      await world.finish();
      // All messages that were under way have arrived by now.
      for (let i = 0; i < 20; i++) await world.step();
      expect(await world.broken()).toEqual([]);
    } finally {
      go();
      await world.end();
    }
  });

  const chance = fc.constantFrom(0, 0, 0.1, 0.3);
  const SCENARIO = fc.record({
    seed: fc.integer(),
    weather: fc.record({ lost: chance, unanswered: chance, twice: chance, late: chance }),
    crashes: fc.array(fc.constantFrom(...POINTS), { maxLength: 3 }),
    jobs: fc.integer({ min: 1, max: 4 }),
    actions: fc.array(
      fc.record({
        after: fc.integer({ min: 0, max: 12 }),
        what: fc.constantFrom('hold', 'release', 'remove', 'cut', 'remedy'),
        to: fc.nat(4),
      }),
      { maxLength: 8 },
    ),
  });

  it('keeps its promises in any weather, whatever the user does and whatever dies', async () => {
    await fc.assert(
      fc.asyncProperty(SCENARIO, async ({ seed, weather, crashes, jobs, actions }) => {
        const world = new World(queue, seeded(seed), weather, SITES);
        try {
          world.crashAt(crashes);
          await world.submit(jobs, 'flooded');
          for (const { after, what, to } of actions) {
            for (let i = 0; i < after; i++) await world.step();
            const site = [...world.sites.values()][to % 3];
            const id = world.jobs[to % world.jobs.length];
            if (what !== 'cut' && what !== 'remedy') {
              if (id) await world.act(id, what);
            } else if (site) site.cut = what === 'cut';
          }
          await world.finish();
          expect(await world.broken()).toEqual([]);
        } finally {
          await world.end();
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  }, 240_000);
});
