import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAttemptKey } from '../../src/job/ids.ts';
import { isEnd } from '../../src/job/life.ts';
import type { Queue } from '../../src/queue/api.ts';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { FlushedDisk } from '../flushed-disk.ts';
import { seeded } from '../seeded.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { World } from './protocol-world.ts';
import { CLEAR } from './simulated-site.ts';

/** Between the arrival of results and their site's permission to delete them. */
const POINTS: readonly CrashPoint[] = ['gm.after-fetch', 'gm.saved-fetch', 'gm.saved-decide', 'gm.before-forget'];

let redis: TestRedis;
let queue: Queue;
let disk: FlushedDisk;
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
  disk = await FlushedDisk.begin();
});
afterAll(async () => {
  disk.end();
  await redis.stop();
});

it('a site is told to forget no result that a power failure at home would lose', async () => {
  const world = new World(queue, seeded(3), CLEAR, [], disk.root);
  const found: (string | undefined)[] = [];
  world.site.met = (call, keys) => {
    if (call !== 'forget') return;
    for (const key of keys) {
      const result = disk.left(join(world.dir, `out.${parseAttemptKey(key)?.proc ?? ''}`))?.toString();
      found.push(result === `${key}\n` ? undefined : `${key}: ${result ?? 'nothing'}`);
    }
  };
  try {
    world.crashAt(POINTS);
    await world.submit(20);
    await world.until((jobs) => jobs.every(({ state }) => isEnd(state)), 60_000);
    expect(world.crashed).toBe(POINTS.length);
    expect(found.length).toBeGreaterThanOrEqual(20);
    expect(found.filter((one) => one !== undefined)).toEqual([]);
  } finally {
    await world.end();
  }
});
