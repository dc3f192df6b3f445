import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { procs } from './all.ts';

let redis: TestRedis;
let queue: Queue;
let now = 1_790_000_000_000;
beforeAll(async () => {
  redis = await startRedis({ clock: () => now });
  queue = await redis.open();
});
afterAll(() => redis.stop());

it('is one holder’s at a time, and each holder’s epoch is greater', async () => {
  const other = await redis.open();
  const [a, b] = await Promise.all([queue.acquireLease('gm:x', 1000), other.acquireLease('gm:x', 1000)]);
  expect([a, b].filter((lease) => lease !== undefined)).toHaveLength(1);
  const first = a ?? b;
  if (!first) throw new Error('nobody has it');
  expect(await queue.renewLease(first, 1000)).toBe(true);
  now += 999;
  expect(await other.acquireLease('gm:x', 1000)).toBeUndefined();
  now += 1;
  const second = await other.acquireLease('gm:x', 1000);
  expect(second?.epoch).toBeGreaterThan(first.epoch);
  expect(await queue.renewLease(first, 1000)).toBe(false);
});

it('refuses every change by a holder who sleeps and wakes late', async () => {
  const { cluster } = await queue.submit({ clusterAd: {}, procs: procs(2), digest: 'd', total: 9 });
  const id = { cluster, proc: 0 };
  const sleeper = await queue.acquireLease('gm:y', 1000);
  now += 5000;
  // Without a holder it does no harm.
  expect(await queue.transition({ id, event: 'take' }, sleeper)).toMatchObject({ ok: true });
  const heir = await queue.acquireLease('gm:y', 1000);
  const events = (await queue.readEvents('0')).length;
  expect(await queue.transition({ id, event: 'prepared' }, sleeper)).toMatchObject({ ok: false, why: 'stale-epoch' });
  expect(await queue.transition({ id, set: { Args: '"x"' } }, sleeper)).toMatchObject({ why: 'stale-epoch' });
  expect(await queue.route([{ cluster, proc: 1 }], { manager: 'm', site: 's' }, sleeper)).toMatchObject([
    { why: 'stale-epoch' },
  ]);
  const made = { nextProc: 2, procs: procs(1), done: true };
  expect(await queue.materialize(cluster, { ...made, ...(sleeper && { lease: sleeper }) })).toMatchObject({
    why: 'stale-epoch',
  });
  expect((await queue.readEvents('0')).length).toBe(events);
  expect(await queue.transition({ id, event: 'prepared' }, heir)).toMatchObject({ ok: true, state: 'prepared' });
});

it('is over when it is given back, for the giver too', async () => {
  const { cluster } = await queue.submit({ clusterAd: {}, procs: procs(1) });
  const lease = await queue.acquireLease('gm:z', 60_000);
  if (!lease) throw new Error('not given');
  await queue.releaseLease(lease);
  expect(await queue.transition({ id: { cluster, proc: 0 }, event: 'take' }, lease)).toMatchObject({
    why: 'stale-epoch',
  });
  expect((await queue.acquireLease('gm:z', 60_000))?.epoch).toBeGreaterThan(lease.epoch);
});

it('does not outlive a clock that jumps back', async () => {
  const lease = await queue.acquireLease('gm:clock', 60_000);
  now -= 3600_000;
  const next = await queue.acquireLease('gm:clock', 60_000);
  expect(next?.epoch).toBeGreaterThan(lease?.epoch ?? Number.POSITIVE_INFINITY);
});

it('keeps its epochs through a death of Redis', async () => {
  const lease = await queue.acquireLease('gm:death', 1, { force: true });
  await redis.kill();
  const after = await redis.open();
  expect((await after.acquireLease('gm:death', 1, { force: true }))?.epoch).toBeGreaterThan(lease?.epoch ?? 1e9);
});
