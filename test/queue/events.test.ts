import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EventEntry, Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';
import { procs } from './all.ts';

let redis: TestRedis;
let queue: Queue;
beforeAll(async () => {
  redis = await startRedis({ patienceMs: 5000 });
  queue = await redis.open({ start: 'keep' });
});
afterAll(() => redis.stop());

const note = (message: string) => queue.notice({ about: 'site-down', site: 'hpc', message });
const messages = (entries: readonly EventEntry[]) =>
  entries.map(({ event }) => (event.type === 'notice' ? event.message : event.type));

describe('a cursor', () => {
  it('keeps its place, and the stream behind the slowest is forgotten', async () => {
    const { cluster } = await queue.submit({ clusterAd: { Owner: '"o\\""' }, procs: procs(3) });
    const slow = await queue.cursor('slow');
    const fast = await queue.cursor('fast');
    const [first] = await slow.read();
    expect(first?.event).toMatchObject({ v: 1, type: 'submitted', cluster, procs: [[0, 3]], owner: 'o"' });
    await note('a');
    await note('"b" \ud800 / \n');
    const seen = await fast.read();
    expect(messages(seen)).toEqual(['submitted', 'a', '"b" \uFFFD / \n']);
    await fast.save(seen.at(-1)?.id ?? '');
    expect(await fast.read()).toEqual([]);
    await slow.save(first?.id ?? '');
    for (let i = 0; i < 500; i++) await note(`n${i}`);
    const later = await (await redis.open()).cursor('fast', '$');
    expect(messages(await later.read({ limit: 2 }))).toEqual(['n0', 'n1']);
    const last = (await slow.read({ limit: 1000 })).at(-1)?.id ?? '';
    await fast.save(last);
    await queue.trimEvents(0);
    expect((await slow.read({ limit: 1000 })).length).toBe(502);
    await slow.save(last);
    // Readers without a cursor read too: a waiting command that is a moment behind.
    await queue.trimEvents();
    expect((await queue.readEvents('0')).length).toBe(503);
    await queue.trimEvents(250);
    const kept = (await queue.readEvents('0')).length;
    expect(kept).toBeGreaterThanOrEqual(250);
    expect(kept).toBeLessThan(400);
    await queue.trimEvents(0);
    expect((await queue.readEvents('0')).length).toBeLessThan(150);
    await slow.drop();
    await expect(slow.read()).rejects.toMatchObject({ code: 'not-found' });
    await fast.drop();
  });

  it('passes over what it does not know, and asks no second time for it', async () => {
    const last = await queue.position();
    const strange = [
      { v: 1, at: 1, type: 'new' },
      { v: 2, at: 1, type: 'notice' },
      { v: 1, at: 1, type: 'edited', job: 1 },
    ];
    const client = new Redis(redis.socket);
    for (const event of strange) await client.xadd('gryphus:events', '*', 'e', JSON.stringify(event));
    await client.quit();
    expect(await queue.readEvents(last)).toEqual([]);
    await note('known');
    expect(messages(await queue.readEvents(last, { limit: 2 }))).toEqual(['known']);
  });

  it("carries a site's message about a candidate", async () => {
    const { cluster } = await queue.submit({ clusterAd: { Owner: '"o"' }, procs: procs(1), manager: 'm' });
    const id = { cluster, proc: 0 };
    const last = await queue.position();
    const [opened] = await queue.candidates.step([{ id, event: 'opened', manager: 'm', site: 'hpc' }]);
    expect(opened).toMatchObject({ ok: true });
    const attempt = opened?.ok === true ? opened.attempt : 0;
    await queue.candidates.step([{ id, attempt, event: 'refused', message: 'no such queue' }]);
    const [, refused] = await queue.readEvents(last);
    expect(refused?.event).toMatchObject({ type: 'candidate', event: 'refused', message: 'no such queue' });
  });

  it('waits for what comes', async () => {
    const cursor = await queue.cursor('waiting', '$');
    const coming = cursor.read({ blockMs: 10_000 });
    await note('there');
    expect(messages(await coming)).toEqual(['there']);
    expect(await cursor.read({ blockMs: 20 })).not.toEqual([]);
    await cursor.drop();
  });
});

describe('the events of one change of many jobs', () => {
  it('are one event for each job, in order, and reading can continue after any of them', async () => {
    const { cluster } = await queue.submit({ clusterAd: {}, procs: procs(1300) });
    const start = await queue.position();
    const ids = Array.from({ length: 1300 }, (_, proc) => ({ cluster, proc })).filter(({ proc }) => proc !== 7);
    const changes = ids.map((id) => ({
      id,
      event: 'hold' as const,
      set: { HoldReason: id.proc === 9 ? '"no\ncause"' : '"why"' },
      info: { by: 'a test' },
    }));
    await queue.transitionMany(changes);
    const expected = ids.map(({ proc }) => [`${cluster}.${proc}`, proc === 9 ? '"no\ncause"' : '"why"']);
    const rows = (entries: readonly EventEntry[]) =>
      entries.flatMap(({ event }) => (event.type === 'transition' ? [[event.job, event.set['HoldReason']]] : []));
    const entries = await queue.readEvents(start, { limit: 5000 });
    expect(rows(entries)).toEqual(expected);
    expect(entries[0]?.event).toMatchObject({ event: 'hold', from: 'idle', to: 'held', info: { by: 'a test' } });
    expect(entries[0]?.event).not.toHaveProperty('jobs');
    expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
    for (const at of [0, 8, 9, 998, 999, 1000, 1297]) {
      const rest = await queue.readEvents(entries[at]?.id ?? '', { limit: 5000 });
      expect(rows(rest)).toEqual(expected.slice(at + 1));
    }
    expect(await queue.readEvents(entries[1298]?.id ?? '')).toEqual([]);
    const stop = new AbortController();
    const heard: EventEntry[] = [];
    const only = /"HoldReason":"\\"why/;
    for await (const entry of queue.subscribe({ from: entries[8]?.id ?? '', signal: stop.signal, only })) {
      heard.push(entry);
      if (heard.length === 1290) stop.abort();
    }
    expect(rows(heard)).toEqual(expected.slice(9).filter(([, reason]) => reason === '"why"'));
    expect(heard.map(({ id }) => id)).toEqual(entries.slice(9).map(({ id }) => id));
  });

  it('are as many as `limit` says, or those of the change in which that is reached', async () => {
    const { cluster } = await queue.submit({ clusterAd: {}, procs: procs(100) });
    const start = await queue.position();
    for (let i = 0; i < 20; i++) await note(`n${i}`);
    await queue.transitionMany(Array.from({ length: 100 }, (_, proc) => ({ id: { cluster, proc }, event: 'hold' })));
    expect(await queue.readEvents(start, { limit: 20 })).toHaveLength(20);
    expect(await queue.readEvents(start, { limit: 21 })).toHaveLength(120);
    expect(await queue.readEvents(start)).toHaveLength(120);
  });
});

describe("a DAG's stream", () => {
  it('is not waited for by one who has left, before the call or while it began', async () => {
    const began = Date.now();
    expect(await queue.dag(7).read('0', { blockMs: 20_000 }, AbortSignal.abort())).toEqual([]);
    const stop = new AbortController();
    const reading = queue.dag(7).read('0', { blockMs: 20_000 }, stop.signal);
    stop.abort();
    expect(await reading.catch(() => [])).toEqual([]);
    expect(Date.now() - began).toBeLessThan(10_000);
  });
});

describe('a subscriber', () => {
  it('continues where it was when Redis dies and comes back, and ends when asked to', async () => {
    const stop = new AbortController();
    const heard: string[] = [];
    const listening = (async () => {
      for await (const entry of queue.subscribe({ signal: stop.signal })) heard.push(...messages([entry]));
    })();
    // It starts at "from now on": it receives the first event after it begins to listen.
    await until(async () => {
      await note('start');
      return heard.length > 0;
    });
    await redis.kill();
    await until(async () =>
      note('after').then(
        () => true,
        () => false,
      ),
    );
    await until(() => heard.includes('after'));
    stop.abort();
    await listening;
    expect(heard.filter((message) => message === 'after')).toHaveLength(1);
  });

  it('leaves no timer behind, which would keep its process from ending', async () => {
    const own = await redis.open();
    await own.position();
    const other = new Redis(redis.socket);
    const blocked = async () => Number(/blocked_clients:(\d+)/.exec(await other.info('clients'))?.[1]);
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const [others, before] = [await blocked(), timers()];
    const stop = new AbortController();
    const listening = (async () => {
      for await (const _ of own.subscribe({ signal: stop.signal }));
    })();
    await until(async () => (await blocked()) > others);
    stop.abort();
    await listening;
    expect(timers()).toBeLessThanOrEqual(before);
    other.disconnect();
  });
});
