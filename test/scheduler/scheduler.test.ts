import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isEnd } from '../../src/job/life.ts';
import { parseJobId } from '../../src/job/ids.ts';
import type { EventEntry, Queue } from '../../src/queue/api.ts';
import type { Listener } from '../../src/scheduler/listener.ts';
import { Scheduler } from '../../src/scheduler/scheduler.ts';
import { GryphusError } from '../../src/errors.ts';
import { procs } from '../queue/all.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';

let redis: TestRedis;
let queue: Queue;
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
});
afterAll(() => redis.stop());

/** A Scheduler with neither sites nor children. */
function schedulerWith(...listeners: Listener[]): Scheduler {
  return new Scheduler({
    queue,
    children: { ensure: () => undefined, running: [] } as never,
    pool: { want: () => undefined, look: () => undefined, vacate: async () => undefined },
    poolFirst: () => false,
    broker: { round: async () => undefined, hasWork: false },
    chooser: async () => ({}) as never,
    glideins: { round: async () => undefined, hasWork: false },
    usage: { round: async () => undefined },
    listeners,
    periodicMs: () => 10,
    hungAfterMs: () => 1e9,
    idleExitMs: () => Number.POSITIVE_INFINITY,
    keep: () => ({ jobs: 1e6, seconds: 1e9, recent: 0 }),
    one: { claim: async () => undefined, giveBack: async () => undefined },
    log: () => undefined,
    onFault: () => undefined,
  });
}

async function ended(count: number): Promise<number> {
  const { cluster } = await queue.submit({ clusterAd: {}, procs: procs(count) });
  const ids = Array.from({ length: count }, (_, proc) => ({ cluster, proc }));
  await queue.transitionMany(ids.map((id) => ({ id, event: 'remove' })));
  return cluster;
}

const idle = async () => (await queue.totals()).jobs === 0;

describe('a Scheduler', () => {
  it('that finds ended jobs lets its listeners hear of them before they move into the history', async () => {
    // More than are read at a time.
    const cluster = await ended(2500);
    const missed: string[] = [];
    let heard = 0;
    const slow: Listener = {
      hear: async (entries: readonly EventEntry[]) => {
        await sleep(100);
        const ends = entries.flatMap(({ event }) =>
          event.type === 'transition' && isEnd(event.to) ? [event.job] : [],
        );
        const there = await queue.get(ends.flatMap((job) => parseJobId(job) ?? []));
        heard += ends.length;
        if (there.length < ends.length) missed.push(`${ends.length - there.length} of ${ends.length}`);
      },
    };
    const scheduler = schedulerWith(slow);
    const run = scheduler.run(() => undefined);
    await until(idle, 20_000);
    scheduler.end();
    await run;
    expect({ heard, missed }).toEqual({ heard: 2500, missed: [] });
    expect(await queue.get([{ cluster, proc: 0 }])).toEqual([]);
  });

  it('moves into the history what had been heard of before it began', async () => {
    const cluster = await ended(3);
    const cursor = await queue.cursor('scheduler', '0');
    const last = (await cursor.read({ limit: 1000 })).at(-1);
    if (last) await cursor.save(last.id);
    const scheduler = schedulerWith({ hear: async () => undefined });
    const run = scheduler.run(() => undefined);
    await until(idle, 10_000);
    scheduler.end();
    await run;
    expect(await queue.get([{ cluster, proc: 0 }])).toEqual([]);
  });

  it('that ends while a listener fails leaves what that one did not hear to the next', async () => {
    await ended(1);
    let scheduler = schedulerWith({
      hear: async () => {
        scheduler.end();
        throw new GryphusError('queue-unavailable', 'away');
      },
    });
    await scheduler.run(() => undefined);
    const heard: string[] = [];
    scheduler = schedulerWith({
      hear: async (entries) => void heard.push(...entries.map(({ event }) => event.type)),
    });
    const run = scheduler.run(() => undefined);
    await until(idle, 10_000);
    scheduler.end();
    await run;
    expect(heard).toContain('transition');
  });
});
