import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { wait } from '../../src/client/wait.ts';
import { formatJobId } from '../../src/job/ids.ts';
import { isEnd } from '../../src/job/life.ts';
import type { Queue } from '../../src/queue/api.ts';
import { all, procs } from '../queue/all.ts';
import { type StepProxy, stepProxy } from '../queue/step-proxy.ts';
import { type Move, World } from '../queue/world.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { some } from '../slow.ts';

let redis: TestRedis;
let writer: Queue;
let reader: Queue;
let proxy: StepProxy;
beforeAll(async () => {
  redis = await startRedis({ patienceMs: 300 });
  writer = await redis.open({ start: 'keep' });
  proxy = await stepProxy(redis.socket);
  reader = await redis.open({ url: proxy.url });
});
afterAll(async () => {
  proxy.close();
  await redis.stop();
});

const idsOf = (cluster: number, count: number) => Array.from({ length: count }, (_, proc) => ({ cluster, proc }));

describe('a wait', () => {
  it('resolves when the next question finds all jobs where they stay, whatever moves between its looks', async () => {
    const ON: readonly Move[] = ['end', 'end many', 'retire', 'retire many', 'run'];
    const plan = fc.record({
      during: fc.array(fc.constantFrom(...ON), { maxLength: 60 }),
      counts: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 }),
      stays: fc.boolean(),
      by: fc.constantFrom('clusters', 'ids', 'constraint', 'both'),
    });
    await fc.assert(
      fc.asyncProperty(plan, async ({ during, counts, stays, by }) => {
        const world = new World(writer);
        const clusters: number[] = [];
        for (const count of counts) clusters.push(await world.submit(count));
        const stayed = stays ? await staying() : undefined;
        const wanted = clusters.flatMap((cluster, i) => idsOf(cluster, counts[i] ?? 0));
        const rest = [...during];
        let busy: Promise<void> = Promise.resolve();
        // One move at a time: the planned ones between two requests of the waiting client, the others as time passes.
        const turn = async (before: Promise<void>, mayBeLast: boolean) => {
          await before;
          const move = rest.shift() ?? (mayBeLast ? (world.alive > 0 ? 'end many' : 'retire') : undefined);
          if (move !== undefined && world.queued > 0) await world.move(move);
        };
        proxy.step = () => (busy = turn(busy, false));
        const timer = setInterval(() => {
          busy = turn(busy, true);
        }, 10);
        const [first = 0, ...others] = clusters;
        const request = {
          clusters: { clusters: [...clusters, ...(stayed === undefined ? [] : [stayed])] },
          ids: { ids: wanted },
          constraint: { constraint: `ClusterId >= ${first}` },
          both: { clusters: others, ids: idsOf(first, counts[0] ?? 0) },
        }[by];
        const waits = wait(reader, { ...request, timeoutMs: 60_000 });
        expect(await waits).toBe(true);
        clearInterval(timer);
        proxy.step = async () => undefined;
        const past = (await all(writer.history.read({ ids: wanted }))).map(({ id }) => formatJobId(id));
        expect(wanted.map(formatJobId).filter((id) => !past.includes(id))).toEqual([]);
        await busy;
      }),
      { numRuns: some(Array.from({ length: 200 }), 8).length },
    );
  }, 300_000);

  /** A cluster that has ended and stays in the queue at its own request. */
  async function staying(): Promise<number> {
    const { cluster } = await writer.submit({
      clusterAd: { Owner: '"me"', LeaveJobInQueue: 'JobStatus == 3' },
      procs: procs(2),
    });
    await writer.transitionMany(idsOf(cluster, 2).map((id) => ({ id, event: 'remove' })));
    return cluster;
  }

  it('includes held jobs on request, and again those that are released', async () => {
    const { cluster } = await writer.submit({ clusterAd: { Owner: '"me"' }, procs: procs(2) });
    const [a, b] = idsOf(cluster, 2);
    if (!a || !b) throw new Error('two');
    let settled = false;
    const waits = wait(writer, { clusters: [cluster], until: 'settled' }).then((well) => {
      settled = true;
      return well;
    });
    await writer.transition({ id: a, event: 'hold' });
    expect(await wait(writer, { ids: [a], until: 'settled' })).toBe(true);
    expect(settled).toBe(false);
    await writer.transition({ id: a, event: 'release' });
    await writer.transition({ id: b, event: 'hold' });
    expect(await wait(writer, { clusters: [cluster], until: 'settled', timeoutMs: 300 })).toBe(false);
    await writer.transition({ id: a, event: 'remove' });
    await writer.retire([a]);
    expect(await waits).toBe(true);
    const left = await writer.get([a, b]);
    expect(left.map(({ state }) => isEnd(state))).toEqual([false]);
  });

  it('lasts as long as it may, also for longer than timers wait', async () => {
    const { cluster } = await writer.submit({ clusterAd: { Owner: '"me"' }, procs: procs(1) });
    const [a] = idsOf(cluster, 1);
    if (!a) throw new Error('one');
    const lasts = [30 * 86_400_000, Number.POSITIVE_INFINITY];
    const waits = Promise.all(lasts.map((timeoutMs) => wait(writer, { clusters: [cluster], timeoutMs })));
    const short = await wait(writer, { clusters: [cluster], timeoutMs: 50 });
    await writer.transition({ id: a, event: 'remove' });
    await writer.retire([a]);
    expect([short, await waits]).toEqual([false, [true, true]]);
  });

  it('continues when the queue is away for longer than its patience, and still ends in time', async () => {
    const { cluster } = await writer.submit({ clusterAd: { Owner: '"me"' }, procs: procs(1) });
    const [a] = idsOf(cluster, 1);
    if (!a) throw new Error('one');
    const own = await redis.open({ start: 'never', patienceMs: 50 });
    const waits = wait(own, { clusters: [cluster] });
    const late = wait(own, { clusters: [cluster], timeoutMs: 1500 });
    await writer.totals();
    await redis.kill();
    expect(await late).toBe(false);
    await writer.transition({ id: a, event: 'remove' });
    await writer.retire([a]);
    expect(await waits).toBe(true);
  });
});
