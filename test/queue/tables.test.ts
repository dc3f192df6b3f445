import * as z from 'zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Queue } from '../../src/queue/api.ts';
import { Table } from '../../src/queue/table.ts';
import { DAEMONS, SITE_STATUS, TRANSFERS_OF } from '../../src/queue/tables.ts';
import { SCHEDULER } from '../../src/util/daemon.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';

describe('a table of the queue', () => {
  let redis: TestRedis;
  let queue: Queue;
  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(() => redis.stop());

  const NUMBERS = new Table('numbers', z.object({ n: z.number(), why: z.string().exactOptional() }));

  it('has rows of its schema, by key', async () => {
    const { kv } = queue;
    expect([await NUMBERS.get(kv, 'a b\n'), await NUMBERS.list(kv)]).toEqual([undefined, []]);
    await NUMBERS.set(kv, 'a b\n', { n: 1, why: 'é|"' });
    await NUMBERS.set(kv, 'c', { n: 2 });
    expect(await NUMBERS.get(kv, 'a b\n')).toEqual({ n: 1, why: 'é|"' });
    expect((await NUMBERS.list(kv)).map(({ key }) => key).sort()).toEqual(['a b\n', 'c']);
    await NUMBERS.delete(kv, 'a b\n');
    expect(await NUMBERS.list(kv)).toEqual([{ key: 'c', value: { n: 2 } }]);
  });

  it('takes a value that its schema does not know for absent, and can replace it', async () => {
    const { kv } = queue;
    await kv.set('numbers', 'half', '{"n":');
    await kv.set('numbers', 'other', '{"n":"2"}');
    expect([await NUMBERS.get(kv, 'half'), await NUMBERS.get(kv, 'other')]).toEqual([undefined, undefined]);
    expect((await NUMBERS.list(kv)).map(({ key }) => key)).toEqual(['c']);
    const { value, version } = await NUMBERS.versioned(kv, 'half');
    expect([value, version > 0]).toEqual([undefined, true]);
    expect(await NUMBERS.set(kv, 'half', { n: 3 }, version)).toBe(true);
    expect(await NUMBERS.get(kv, 'half')).toEqual({ n: 3 });
  });

  it('sets a row that has not changed in the meantime, and no other', async () => {
    const { kv } = queue;
    expect(await NUMBERS.set(kv, 'one', { n: 1 }, 0)).toBe(true);
    expect(await NUMBERS.set(kv, 'one', { n: 2 }, 0)).toBe(false);
    const { version } = await NUMBERS.versioned(kv, 'one');
    expect(await NUMBERS.set(kv, 'one', { n: 3 }, version)).toBe(true);
    expect(await NUMBERS.set(kv, 'one', { n: 4 }, version)).toBe(false);
    expect(await NUMBERS.get(kv, 'one')).toEqual({ n: 3 });
  });

  it('loses no field of what the daemons tell each other', async () => {
    const { kv } = queue;
    const daemon = { pid: 2, started: '77', since: 1, build: { version: '1', path: '/p', built: '' } };
    await DAEMONS.set(kv, SCHEDULER, daemon);
    expect(await DAEMONS.get(kv, SCHEDULER)).toEqual(daemon);
    const view = { connection: 'down', message: 'm', since: 1, trouble: 't' } as const;
    await SITE_STATUS.set(kv, 'me/there', view);
    expect(await SITE_STATUS.list(kv)).toEqual([{ key: 'me/there', value: view }]);
    const told = { at: 1, all: [{ path: '/a', bytes: 3, done: 2, resumed: 1, since: 5 }] };
    await TRANSFERS_OF.from.set(kv, 'me/there', told);
    expect([await TRANSFERS_OF.from.get(kv, 'me/there'), await TRANSFERS_OF.to.get(kv, 'me/there')]).toEqual([
      told,
      undefined,
    ]);
  });
});
