import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import type { Queue, Work, WorkItem, WorkHandler } from '../../src/queue/api.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';

let redis: TestRedis;
let queue: Queue;
let work: Work;
let names = 0;
beforeAll(async () => {
  redis = await startRedis({ patienceMs: 5000 });
  queue = await redis.open({ start: 'keep' });
});
afterEach(() => work.close());
afterAll(() => redis.stop());

function open(): Work {
  names += 1;
  work = queue.work(`gm-frida+/CN=F:${names}`);
  return work;
}

/** A promise and its resolver. */
function gate() {
  let open: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, passed };
}

describe('work', () => {
  it('runs an item once however often it is added while it waits', async () => {
    const w = open();
    for (let i = 0; i < 5; i++) await w.add('advance', '12', { i });
    await w.add('advance', 'a:b/ü', null);
    const seen: WorkItem[] = [];
    await w.run({ advance: async (item) => void seen.push(item) });
    await until(() => seen.length >= 2);
    await w.add('advance', 'end', null);
    await until(() => seen.some(({ id }) => id === 'end'));
    expect(seen.map(({ id }) => id)).toEqual(['12', 'a:b/ü', 'end']);
    expect(seen[0]).toMatchObject({ kind: 'advance', attempt: 1 });
  });

  it('runs an item again that is wished while it runs', async () => {
    const w = open();
    const [begun, go] = [gate(), gate()];
    const seen: unknown[] = [];
    const handler: WorkHandler = async ({ data }) => {
      seen.push(data);
      begun.open();
      await go.passed;
      return undefined;
    };
    await w.run({ k: handler });
    await w.add('k', 'x', 1);
    await begun.passed;
    await w.wake('k', 'x', 2);
    await w.add('k', 'x', 3);
    go.open();
    await until(() => seen.length === 2);
    expect(seen).toEqual([1, 3]);
  });

  it('loses no wish, whenever it comes', async () => {
    const w = open();
    let asked = 0;
    let done = 0;
    await w.run({ k: async () => void (done = asked) });
    for (let i = 1; i <= 200; i++) {
      asked = i;
      await w.wake('k', 'x', null);
      if (i % 10 === 0) await until(() => done === i, 5000);
    }
  });

  it('wakes what waits for its time', async () => {
    const w = open();
    const seen: number[] = [];
    await w.run({ k: async () => (seen.push(Date.now()) === 1 ? { againInMs: 3600_000 } : undefined) });
    await w.add('k', 'x', null, { delayMs: 3600_000 });
    await w.wake('k', 'x', null);
    await until(() => seen.length === 1);
    await w.wake('k', 'x', null);
    await until(() => seen.length === 2);
  });

  it('comes back after the time that its handler names', async () => {
    const w = open();
    let runs = 0;
    await w.run({ k: async () => (++runs < 3 ? { againInMs: 10 } : undefined) });
    await w.add('k', 'x', null);
    await until(() => runs === 3);
  });

  it('is tried as often as it may, but not where trying again cannot help', async () => {
    const w = open();
    const failed: string[] = [];
    const tries: number[] = [];
    await w.run(
      {
        flaky: async ({ attempt }) => {
          tries.push(attempt);
          throw new Error('no luck');
        },
        never: async () => {
          throw new GryphusError('site-refused', 'never');
        },
      },
      { onFailed: ({ kind }, error) => failed.push(`${kind}: ${error.message}`) },
    );
    await w.add('flaky', 'x', null, { attempts: 3, backoffMs: 5 });
    await w.add('never', 'x', null, { attempts: 3, backoffMs: 5 });
    await until(() => failed.length === 2);
    expect(tries).toEqual([1, 2, 3]);
    expect(failed.sort()).toEqual(['flaky: no luck', 'never: never']);
  });

  it('can all be lost, and continues', async () => {
    const w = open();
    let runs = 0;
    await w.run({ k: async () => void (runs += 1) });
    await w.add('k', 'later', null, { delayMs: 3600_000 });
    await queue.forgetAllWork();
    await w.add('k', 'later', null);
    await until(() => runs === 1);
  });

  it('continues after Redis died', async () => {
    const w = open();
    let runs = 0;
    await w.run({ k: async () => void (runs += 1) });
    await w.add('k', 'a', null);
    await until(() => runs === 1);
    await redis.kill();
    await until(async () =>
      w.wake('k', 'b', null).then(
        () => true,
        () => false,
      ),
    );
    await until(() => runs === 2);
  });

  it('of a killed worker is dropped by a fresh one, which begins at once', async () => {
    const w = open();
    const stuck = `import { Worker } from 'bullmq';
      new Worker(process.argv[1], () => { console.log('has it'); return new Promise(() => setInterval(() => 0, 1000)); },
        { connection: { path: process.argv[2], maxRetriesPerRequest: null }, prefix: 'gryphus:bull' });`;
    const name = encodeURIComponent(`gm-frida+/CN=F:${names}`);
    const child = spawn(process.execPath, ['--input-type=module', '-e', stuck, name, redis.socket], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await w.add('k', 'x', 'old');
    await new Promise((resolve) => {
      child.stdout.once('data', resolve);
    });
    child.kill('SIGKILL');
    const seen: unknown[] = [];
    await w.run({ k: async ({ data }) => void seen.push(data) }, { fresh: true });
    await w.wake('k', 'x', 'new');
    await until(() => seen.length > 0, 3000);
    expect(seen).toEqual(['new']);
  });
});

describe('a queue that is told to end as its Redis was, as at a shutdown', () => {
  it.each([0, 50, 500])('ends at once, %i ms later', async (ms) => {
    const own = await startRedis();
    try {
      const told = new AbortController();
      const leaving = await own.open({ start: 'await', patienceMs: 30_000, leaving: told.signal });
      const w = leaving.work('gm');
      const begun = gate();
      const handler: WorkHandler = async () => {
        begun.open();
        await sleep(100);
        return undefined;
      };
      await w.run({ k: handler });
      await w.add('k', 'x', null);
      await begun.passed;
      await own.kill();
      await sleep(ms);
      const asked = w.wake('k', 'y', null).catch((thrown: unknown) => thrown);
      const since = performance.now();
      told.abort();
      await leaving.close();
      expect(await asked).toMatchObject({ code: 'queue-unavailable' });
      expect(performance.now() - since).toBeLessThan(2000);
    } finally {
      await own.stop();
    }
  });
});
