import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import type { Queue } from '../../src/queue/api.ts';
import type { Listener } from '../../src/scheduler/listener.ts';
import { Patience } from '../../src/scheduler/patience.ts';
import { Scheduler, type SchedulerOptions } from '../../src/scheduler/scheduler.ts';
import { netOf } from '../../src/util/process-net.ts';
import { until } from '../agent/agent.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';

describe('a Scheduler whose parts fail', () => {
  let redis: TestRedis;
  let queue: Queue;
  const faults: string[] = [];
  const heard: string[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(() => redis.stop());

  /** Fails on jobs of user `bad`. */
  class Poisoned implements Listener {
    async hear(entries: Parameters<Listener['hear']>[0]): Promise<void> {
      const names = entries.flatMap(({ event }) => (event.type === 'submitted' ? [String(event.cluster)] : []));
      for (const name of names) if (name === poison) throw new TypeError(`cannot bear ${name}`);
      heard.push(...names);
    }
  }
  let poison: string | undefined;

  function scheduler(more: Partial<SchedulerOptions>): Scheduler {
    return new Scheduler({
      queue,
      children: { ensure: () => undefined, running: [] } as unknown as SchedulerOptions['children'],
      pool: { want: () => undefined, look: () => undefined, vacate: async () => undefined },
      poolFirst: () => false,
      broker: { round: async () => undefined, hasWork: false },
      chooser: () => Promise.reject(new Error('nothing is materialized here')),
      glideins: { round: async () => undefined, hasWork: false },
      usage: { round: async () => undefined },
      listeners: [],
      periodicMs: () => 50,
      hungAfterMs: () => 60_000,
      idleExitMs: () => Number.POSITIVE_INFINITY,
      keep: () => ({ jobs: 100, seconds: 100, recent: 0 }),
      one: { claim: async () => undefined, giveBack: async () => undefined },
      log: () => undefined,
      onFault: (message) => void faults.push(message),
      ...more,
    });
  }

  async function submit(manager: string): Promise<number> {
    const { cluster } = await queue.submit({
      clusterAd: { Owner: '"u"', Cmd: '"/bin/true"', Iwd: '"/tmp"', JobUniverse: '5' },
      procs: [{ attrs: {} }],
      manager,
      site: 'there',
    });
    return cluster;
  }

  it('continues with all the others, retries, and skips the one event that a listener cannot handle', async () => {
    let rounds = 0;
    const started = new Set<string>();
    const under = scheduler({
      broker: {
        round: async () => {
          rounds += 1;
          throw new RangeError('the broker is broken');
        },
        hasWork: true,
      },
      glideins: { round: () => Promise.reject(new GryphusError('bad-config', 'no such site')), hasWork: false },
      usage: { round: async () => undefined },
      children: {
        ensure: (wanted: ReadonlySet<string>) => [...wanted].forEach((one) => started.add(one)),
        running: [],
      } as unknown as SchedulerOptions['children'],
      listeners: [new Poisoned()],
    });
    poison = String(await submit('bad'));
    const running = under.run(() => undefined);
    const good = await submit('good');
    await until('the good job to be heard', () => heard.includes(String(good)) || undefined, 20_000);
    await until('its GridManager to be wanted', () => started.has('good') || undefined);
    expect(heard).not.toContain(poison);
    expect(
      faults.some((text) => text.includes(`(submitted), which is skipped`) && text.includes(`cannot bear ${poison}`)),
    ).toBe(true);
    expect(faults.some((text) => text.includes('the broker is broken'))).toBe(true);
    expect(faults.some((text) => text.includes('looking after glideins') && text.includes('no such site'))).toBe(true);
    // With back-off: one, two, four seconds.
    expect(rounds).toBeLessThan(8);
    under.end();
    await running;
    expect((await queue.cursor('scheduler', '0')) !== undefined).toBe(true);
  }, 40_000);

  it('ends where another has its work', async () => {
    const under = scheduler({
      broker: { round: () => Promise.reject(new GryphusError('stale-epoch', 'another one')), hasWork: false },
    });
    await expect(under.run(() => undefined)).rejects.toThrow('another one');
  });

  it('waits for a queue that is away, and tells each event once where nothing fails', async () => {
    const stop = new AbortController();
    const said: string[] = [];
    const patience = new Patience({
      stop,
      log: (message) => said.push(message),
      onFault: (message) => said.push(message),
    });
    let turns = 0;
    const done = await patience.with('x', async () => {
      turns += 1;
      if (turns < 3) throw new GryphusError('queue-unavailable', 'away');
      return turns;
    });
    expect([done, said]).toEqual([3, ['trying again', 'trying again']]);
    expect(patience.attempt('y', () => 7)).toBe(7);
    expect(
      patience.attempt('y', () => {
        throw new TypeError('z');
      }),
    ).toBeUndefined();
    // It is left alone now.
    expect(patience.attempt('y', () => 7)).toBeUndefined();
    expect(said.at(-1)).toBe('Gryphus failed while y, because of an internal error; it retries in 1 s: z');
  });
});

it('uncaught faults are logged, and many of them within ten minutes end the process', () => {
  const said: string[] = [];
  const ends: string[] = [];
  let now = 0;
  const caught = netOf({
    onFault: (message) => said.push(message),
    end: ({ message }) => ends.push(message),
    now: () => now,
  });
  for (let i = 0; i < 100; i++) {
    caught(new TypeError(`fault ${i}`));
    now += 60_000;
  }
  expect(said).toHaveLength(100);
  expect(ends).toEqual([]);
  for (let i = 0; i < 20; i++) caught('a word');
  expect(ends[0]).toBe('a word');
});
