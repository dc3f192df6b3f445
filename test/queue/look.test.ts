import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatJobId } from '../../src/job/ids.ts';
import type { State } from '../../src/job/life.ts';
import type { LookWish, Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { some } from '../slow.ts';
import { all } from './all.ts';
import { type StepProxy, stepProxy } from './step-proxy.ts';
import { MOVES, World } from './world.ts';

let redis: TestRedis;
let writer: Queue;
let reader: Queue;
let proxy: StepProxy;
let now = Date.UTC(2026, 0, 1);
beforeAll(async () => {
  redis = await startRedis({ clock: () => now });
  writer = await redis.open();
  proxy = await stepProxy(redis.socket);
  reader = await redis.open({ url: proxy.url });
});
afterAll(async () => {
  proxy.close();
  await redis.stop();
});

const nextMonth = () => {
  now += 32 * 86_400_000;
};
const idsOf = (cluster: number, count: number) => Array.from({ length: count }, (_, proc) => ({ cluster, proc }));

describe('one look at queue and history', () => {
  it('gives each job once, whatever moves between any two of its steps', async () => {
    const plan = fc.record({
      before: fc.array(fc.constantFrom(...MOVES), { maxLength: 8 }),
      during: fc.array(fc.constantFrom(...MOVES), { minLength: 6, maxLength: 40 }),
      counts: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 3 }),
      by: fc.constantFrom('cluster', 'ids', 'both', 'two wishes', 'owner'),
    });
    await fc.assert(
      fc.asyncProperty(plan, async ({ before, during, counts, by }) => {
        const world = new World(writer, nextMonth);
        const clusters: { cluster: number; count: number }[] = [];
        for (const count of counts) clusters.push({ cluster: await world.submit(count), count });
        for (const move of before) await world.move(move);
        const wanted = clusters.flatMap(({ cluster, count }) => idsOf(cluster, count));
        const rest = [...during];
        proxy.step = async () => {
          const move = rest.shift();
          if (move !== undefined) await world.move(move);
        };
        const [first = { cluster: 0, count: 0 }, ...more] = clusters;
        const others = more.map(({ cluster }) => cluster);
        const wishes: Record<typeof by, LookWish[]> = {
          cluster: [{ clusters: clusters.map(({ cluster }) => cluster) }],
          ids: [{ ids: wanted }],
          both: [{ ids: idsOf(first.cluster, first.count), clusters: others }],
          'two wishes': [{ clusters: [first.cluster], where: () => true }, { ids: wanted }],
          owner: [{ owner: 'me' }],
        };
        const seen: string[] = [];
        for (const { jobs } of await all(reader.look(wishes[by]))) seen.push(...jobs.map(({ id }) => formatJobId(id)));
        proxy.step = async () => undefined;
        expect(seen.filter((name, i) => seen.indexOf(name) !== i)).toEqual([]);
        expect(wanted.map(formatJobId).filter((name) => !seen.includes(name))).toEqual([]);
        if (by !== 'owner') expect(seen).toHaveLength(wanted.length);
      }),
      { numRuns: some(Array.from({ length: 400 }), 8).length },
    );
  }, 300_000);

  it('gives jobs of some states once, although they go from one to the other meanwhile', async () => {
    const STATES: readonly State[] = ['idle', 'preparing', 'prepared'];
    for (let round = 0; round < 20; round++) {
      const world = new World(writer, nextMonth);
      const cluster = await world.submit(40);
      for (let i = 0; i < round % 4; i++) await world.move('run');
      proxy.step = () => world.move('run');
      const seen = (await all(reader.query({ states: STATES, manager: 'm', site: 's' }))).map(({ id }) => id);
      proxy.step = async () => undefined;
      expect(seen.filter((id) => id.cluster === cluster)).toEqual(idsOf(cluster, 40));
      expect(new Set(seen.map(formatJobId)).size).toBe(seen.length);
      expect(await all(reader.query({ states: STATES, site: 'no such site' }))).toEqual([]);
    }
  }, 60_000);

  it('reads a history file as it was, while it grows, gets a successor, and is removed', async () => {
    const world = new World(writer, nextMonth);
    const cluster = await world.submit(30);
    await world.move('end many');
    await world.move('retire many');
    const seen: string[] = [];
    for await (const { id } of writer.history.read({ clusters: [cluster] })) {
      seen.push(formatJobId(id));
      await world.move('end');
      await world.move('retire');
      if (seen.length === 3) await world.move('next month');
      if (seen.length === 5) await writer.history.prune({ jobs: 1, seconds: 1, recent: 0 });
    }
    expect(seen).toHaveLength(7);
    expect(new Set(seen).size).toBe(7);
  });
});
