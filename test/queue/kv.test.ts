import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';

let redis: TestRedis;
let queue: Queue;
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
});
afterAll(() => redis.stop());

it('keeps values of any text by namespace and key', async () => {
  expect(await queue.kv.get('site:a', 'k')).toBeUndefined();
  await queue.kv.set('site:a', 'k|"\n', '1|2\né');
  await queue.kv.set('site:b', 'k|"\n', '');
  expect(await queue.kv.get('site:a', 'k|"\n')).toMatchObject({ value: '1|2\né' });
  expect((await queue.kv.list('site:b')).map(({ key, value }) => [key, value])).toEqual([['k|"\n', '']]);
  await queue.kv.delete('site:a', 'k|"\n');
  expect(await queue.kv.list('site:a')).toEqual([]);
});

it('lets one of many writers win', async () => {
  const others = await Promise.all([redis.open(), redis.open(), redis.open()]);
  await queue.kv.set('n', 'count', '0');
  await Promise.all(
    others.map(async ({ kv }) => {
      for (let added = 0; added < 30; ) {
        const known = await kv.get('n', 'count');
        const version = await kv.set('n', 'count', String(Number(known?.value) + 1), known?.version ?? 0);
        if (version !== undefined) added += 1;
      }
    }),
  );
  expect((await queue.kv.get('n', 'count'))?.value).toBe('90');
  // A version is never reused, not even after a delete.
  const old = await queue.kv.get('n', 'count');
  await queue.kv.delete('n', 'count');
  expect(await queue.kv.set('n', 'count', 'x', old?.version ?? 0)).toBeUndefined();
  expect(await queue.kv.set('n', 'count', 'x', 0)).toBeGreaterThan(old?.version ?? 0);
});
