import { rmSync } from 'node:fs';
import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isEnd } from '../../src/job/life.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { Run } from './side-by-side.ts';
import { step } from './steps.ts';

let redis: TestRedis;
let raw: Redis;
beforeAll(async () => {
  redis = await startRedis();
  raw = new Redis(redis.socket);
});
afterAll(async () => {
  raw.disconnect();
  await redis.stop();
});

it('keeps states, indexes, counters, events and history in agreement, whatever is done and cut off', async () => {
  let ends = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: 'max' }), async (steps) => {
      await raw.flushall();
      rmSync(`${redis.stateDir}/history`, { recursive: true, force: true });
      const queue = await redis.open();
      const run = new Run(queue, raw);
      try {
        await run.step({ do: 'take-over' });
        for (const one of steps) await run.step(one);
        await run.check();
        ends += [...run.model.jobs.values()].filter((job) => isEnd(job.state)).length + run.model.retired.size;
      } finally {
        await queue.close();
      }
    }),
    { numRuns: 40 },
  );
  // The walk proves nothing if it never gets anywhere.
  expect(ends).toBeGreaterThan(40);
}, 120_000);
