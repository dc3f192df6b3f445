import { Redis } from 'ioredis';
import { expect, it, vi } from 'vitest';
import { seeded } from '../seeded.ts';
import { startRedis } from '../sites/redis.ts';
import { World } from './protocol-world.ts';
import { CLEAR } from './simulated-site.ts';

/** What a GridManager asks the queue in some seconds for reasons of its own: its lease, the workers and readers that wait. */
const OWN = 60;

it('a site that has nothing to report costs the queue nothing, however often it is polled', async () => {
  const redis = await startRedis();
  const world = new World(await redis.open(), seeded(1), CLEAR);
  const client = new Redis({ path: redis.socket });
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1]);
  try {
    world.site.full = true;
    await world.submit(20);
    await world.until((jobs) => jobs.every(({ state }) => state === 'committed'));
    let polls = 0;
    world.site.met = (call) => {
      if (call === 'poll') polls += 1;
    };
    const past = async (some: number) => {
      const end = polls + some;
      await vi.waitFor(() => expect(polls).toBeGreaterThan(end), 30_000);
    };
    await past(20);
    const before = await commands();
    await past(300);
    expect((await commands()) - before).toBeLessThan(OWN);
    // It is still watched.
    world.site.full = false;
    await world.until((jobs) => jobs.every(({ state }) => state === 'completed'));
  } finally {
    await client.quit();
    await world.end();
    await redis.stop();
  }
});
