import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type Queue, stopRedis } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { procs } from './all.ts';

let redis: TestRedis | undefined;
afterEach(async () => {
  await redis?.stop();
  redis = undefined;
});

const submit = async (queue: Queue, count = 1) => (await queue.submit({ clusterAd: {}, procs: procs(count) })).cluster;

it('a queue knows each mark that it made itself, over any number of starts of its Redis', async () => {
  redis = await startRedis();
  const queue = await redis.open({ start: 'keep', patienceMs: 10_000 });
  const marks = [await queue.mark()];
  for (let turn = 0; turn < 3; turn++) {
    await submit(queue);
    marks.push(await queue.mark());
    await redis.kill();
    // Read-only requests are repeated until the server is back.
    await queue.totals();
    await submit(queue);
    marks.push(await queue.mark());
  }
  expect(marks.map(({ incarnation }) => incarnation)).toEqual([1, 1, 2, 2, 3, 3, 4]);
  for (const mark of marks) expect(await queue.divergence(mark)).toBeUndefined();
});

it.each([
  ['a few changes', 0],
  ['changes over several starts', 2],
])('an older copy of a queue is known by %s that it does not have', async (_what, starts) => {
  redis = await startRedis();
  const { stateDir } = redis;
  const files = join(stateDir, 'redis');
  const stop = async () => {
    await stopRedis({ stateDir });
  };
  const before = await redis.open();
  await submit(before, 2);
  const known = await before.mark();
  await before.close();
  await stop();
  cpSync(files, `${files}.copy`, { recursive: true });

  let lost = await redis.open();
  const sameLife = await lost.mark();
  await submit(lost);
  for (let n = 0; n < starts; n++) {
    await lost.close();
    await stop();
    lost = await redis.open();
    await submit(lost);
  }
  const mark = await lost.mark();
  await lost.close();
  await stop();

  rmSync(files, { recursive: true });
  cpSync(`${files}.copy`, files, { recursive: true });
  const queue = await redis.open();
  expect(await queue.divergence(known)).toBeUndefined();
  // Whatever has been done since, and however often it was started.
  for (let turn = 0; turn < 4; turn++) {
    expect(await queue.divergence(mark)).toBe(1);
    expect(await queue.divergence(sameLife)).toBe(1);
    await submit(queue);
    await submit(queue);
  }
  await queue.skipClusters(mark.cluster + 100);
  expect(await submit(queue)).toBe(mark.cluster + 101);
});

it('a queue takes an agent over only while it has no jobs of another one, and only with a later epoch', async () => {
  redis = await startRedis();
  const first = await redis.open();
  expect(first.holder.epoch).toBe(1);
  expect(await first.takeOver('LostAgent1', 1)).toBe(false);
  expect(await first.takeOver('LostAgent1', 3)).toBe(true);
  expect(await first.takeOver('LostAgent1', 3)).toBe(false);
  const second = await redis.open();
  expect(second.agent).toBe('LostAgent1');
  expect(second.holder.epoch).toBe(3);
  expect(second.holder.name).not.toBe(first.holder.name);
  await submit(second);
  expect(await second.takeOver('Another123', 9)).toBe(false);
  expect(await second.takeOver('LostAgent1', 4)).toBe(true);
  expect((await redis.open()).holder).toMatchObject({ epoch: 4 });
});
