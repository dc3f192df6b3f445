import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatAttemptKey } from '../../src/job/ids.ts';
import { isEnd } from '../../src/job/life.ts';
import type { Queue } from '../../src/queue/api.ts';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { World } from './protocol-world.ts';
import { CLEAR } from './simulated-site.ts';
import { seeded } from '../seeded.ts';

/** The points that jobs pass on their way home, and when they are removed. */
const RUN: readonly CrashPoint[] = [
  'gm.before-take',
  'gm.saved-take',
  'gm.before-prepare',
  'gm.after-prepare',
  'gm.saved-prepare',
  'gm.before-commit',
  'gm.after-commit',
  'gm.saved-commit',
  'gm.after-poll',
  'gm.saved-poll',
  'gm.before-fetch',
  'gm.after-fetch',
  'gm.saved-fetch',
  'gm.before-decide',
  'gm.saved-decide',
  'gm.before-forget',
  'gm.after-forget',
  'gm.saved-forget',
];
const REMOVE: readonly CrashPoint[] = ['gm.before-cancel', 'gm.after-cancel', 'gm.saved-cancel'];
const POINTS = [...RUN, ...REMOVE];
/** Scenarios per test run; thousands find rare errors. */
const RUNS = Number(process.env['GRYPHUS_RUNS'] ?? 25);

describe('the protocol between a GridManager and a site', () => {
  let redis: TestRedis;
  let queue: Queue;

  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(() => redis.stop());

  /** A GridManager dies at each point in turn, and the next one continues until its own death. */
  async function dieAt(points: readonly CrashPoint[]): Promise<void> {
    const world = new World(queue, seeded(7), CLEAR);
    world.crashAt(points);
    try {
      while (world.crashed < points.length) {
        const before = world.crashed;
        const [removed] = await world.submit(2);
        await world.until(async (jobs) => {
          const job = jobs.find(({ id }) => id.cluster === removed?.cluster && id.proc === removed.proc);
          if (removed && job && job.state !== 'idle' && !isEnd(job.state)) await world.act(removed, 'remove');
          return world.crashed > before || jobs.every(({ state }) => isEnd(state));
        });
      }
      await world.finish();
      expect(await world.broken()).toEqual([]);
    } finally {
      await world.end();
    }
  }

  it('continues after a death at every point', () => dieAt(POINTS), 120_000);

  it('continues after deaths at any two points, one after the other', async () => {
    const pair = fc.tuple(fc.constantFrom(...POINTS), fc.constantFrom(...POINTS));
    const walks = fc.array(pair, { minLength: 5, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(walks, (pairs) => dieAt(pairs.flat())),
      { numRuns: Math.ceil(RUNS / 12), endOnFailure: true },
    );
  }, 240_000);

  it('holds what does not fit on our disk, and brings home the rest; a release runs nothing twice', async () => {
    const world = new World(queue, seeded(7), CLEAR);
    try {
      const ids = await world.submit(5);
      const [, second] = ids;
      if (second) world.site.noRoomFor.add(formatAttemptKey({ agent: queue.agent, ...second, attempt: 1 }));
      await world.until((jobs) => jobs.every(({ state }) => state === 'completed' || state === 'kept'));
      const jobs = await world.records();
      expect(jobs.map(({ state }) => state)).toEqual(['completed', 'kept', 'completed', 'completed', 'completed']);
      expect(jobs[1]?.attrs.get('HoldReasonCode')).toBe('21');
      world.site.noRoomFor.clear();
      await world.finish();
      expect(await world.broken()).toEqual([]);
      expect([...world.site.starts.values()]).toEqual([1, 1, 1, 1, 1]);
    } finally {
      await world.end();
    }
  });

  it('tells the site since when a job is to end, whichever request came first', async () => {
    const world = new World(queue, seeded(7), CLEAR);
    try {
      const [id] = await world.submit(1);
      await world.until(([job]) => job?.state === 'committed' || job?.state === 'running');
      world.site.stuck = true;
      world.crashAt(['gm.after-cancel']);
      if (id) await world.act(id, 'remove');
      const asked = (): readonly (number | undefined)[] => [...world.site.since.values()].flat();
      await world.until(() => world.crashed === 1 && asked().length > 1);
      const [job] = await world.records();
      expect(new Set(asked())).toEqual(new Set([(job?.since ?? 0) * 1000]));
      world.site.stuck = false;
      await world.finish();
      expect(await world.broken()).toEqual([]);
    } finally {
      await world.end();
    }
  });

  const chance = fc.constantFrom(0, 0, 0.1, 0.3);
  const SCENARIO = fc.record({
    seed: fc.integer(),
    weather: fc.record({ lost: chance, unanswered: chance, twice: chance, late: chance }),
    crashes: fc.array(fc.constantFrom(...POINTS), { maxLength: 3 }),
    jobs: fc.integer({ min: 1, max: 5 }),
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
        const world = new World(queue, seeded(seed), weather);
        try {
          world.crashAt(crashes);
          await world.submit(jobs);
          for (const { after, what, to } of actions) {
            for (let i = 0; i < after; i++) await world.step();
            if (what === 'cut' || what === 'remedy') world.site.cut = what === 'cut';
            else {
              const id = world.jobs[to % world.jobs.length];
              if (id) await world.act(id, what);
            }
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
