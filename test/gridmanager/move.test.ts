import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Queue } from '../../src/queue/api.ts';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { seeded } from '../seeded.ts';
import { World } from './protocol-world.ts';
import { CLEAR } from './simulated-site.ts';

const SITES = ['there', 'second'] as const;
/** The points passed by jobs that are withdrawn, and at which they are at both sites. */
const POINTS: readonly CrashPoint[] = [
  'gm.before-take',
  'gm.saved-take',
  'gm.after-prepare',
  'gm.saved-prepare',
  'gm.after-commit',
  'gm.saved-commit',
  'gm.saved-poll',
  'gm.before-cancel',
  'gm.after-cancel',
  'gm.saved-cancel',
  'gm.after-forget',
];
/** Scenarios per test run; thousands find rare errors. */
const RUNS = Number(process.env['GRYPHUS_RUNS'] ?? 15);

describe('a job that is moved', () => {
  let redis: TestRedis;
  let queue: Queue;

  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(() => redis.stop());

  const chance = fc.constantFrom(0, 0, 0.1, 0.4);
  const SCENARIO = fc.record({
    seed: fc.integer(),
    weather: fc.record({ lost: chance, unanswered: chance, twice: chance, late: chance }),
    crashes: fc.array(fc.constantFrom(...POINTS), { maxLength: 3 }),
    jobs: fc.integer({ min: 1, max: 5 }),
    actions: fc.array(
      fc.record({
        after: fc.nat(6),
        what: fc.constantFrom('there', 'second', 'there', 'second', 'hold', 'release', 'remove', 'cut', 'remedy'),
        to: fc.nat(4),
      }),
      { minLength: 2, maxLength: 12 },
    ),
  });

  it('starts once, wherever it is wanted and whatever dies, and no wish is forgotten', async () => {
    await fc.assert(
      fc.asyncProperty(SCENARIO, async ({ seed, weather, crashes, jobs, actions }) => {
        const world = new World(queue, seeded(seed), weather, ['second']);
        try {
          world.crashAt(crashes);
          await world.submit(jobs);
          for (const { after, what, to } of actions) {
            for (let i = 0; i < after; i++) await world.step();
            if (what === 'cut' || what === 'remedy') {
              world.site.cut = what === 'cut';
              continue;
            }
            const id = world.jobs[to % world.jobs.length];
            if (!id) continue;
            if (what === 'there' || what === 'second') await world.move(id, what);
            else await world.act(id, what);
          }
          await world.finish();
          expect(await world.broken()).toEqual([]);
          for (const { state, attrs } of await world.records())
            expect(state === 'completed' ? attrs.get('GryphusMoveTo') : undefined).toBeUndefined();
        } finally {
          await world.end();
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  }, 240_000);

  it('is not begun by the site that has just read it', async () => {
    let moved = 0;
    // Between a site's search for idle jobs and its taking them, their owner acts first.
    const raced: Queue = new Proxy(queue, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (name !== 'nextJobs') return typeof value === 'function' ? value.bind(target) : value;
        return async (wish: Parameters<Queue['nextJobs']>[0]) => {
          const jobs = await target.nextJobs(wish);
          if (wish.state === 'idle' && wish.site === 'there' && wish.limit !== 1 && jobs.length > 0) {
            await target.route(
              jobs.map(({ id }) => id),
              { manager: jobs[0]?.manager ?? '', site: 'second' },
            );
            moved += jobs.length;
          }
          return jobs;
        };
      },
    });
    const world = new World(raced, seeded(3), CLEAR, ['second']);
    try {
      await world.submit(4);
      await world.finish();
      expect(moved).toBe(4);
      expect(await world.broken()).toEqual([]);
      expect([...(world.sites.get('there')?.starts ?? [])]).toEqual([]);
      expect((await world.records()).map(({ site }) => site)).toEqual(SITES.flatMap(() => ['second', 'second']));
    } finally {
      await world.end();
    }
  });
});
