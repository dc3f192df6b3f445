import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Logger, openLog } from '../../src/log.ts';
import type { Queue } from '../../src/queue/api.ts';
import type { WorkItem } from '../../src/queue/work-types.ts';
import { stayUntil } from '../../src/queue/stay.ts';
import { CREDENTIAL_COPIES, SITE_STATUS } from '../../src/queue/tables.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';
import { SLOW } from '../slow.ts';
import { procs } from './all.ts';

const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 0, 1, 12);
/** One job stands for this many of a year of ten million. */
const FACTOR = 1000;
const JOBS_A_DAY = Math.round(10_000_000 / 365 / FACTOR);
/** So that the bounds are reached as they are with ten million: `history.keep_jobs` is 100,000. */
const KEEP = { jobs: Math.round(100_000 / FACTOR) * 10, seconds: 90 * 86_400, recent: 0 };
const EVENTS = 500;
/** `log.max_size`, scaled. */
const LOG_BYTES = 10_000;
const SITES = 10;
const LOOPS = ['submit', 'watch', 'results', 'cancel', 'capacityPoll'] as const;

let redis: TestRedis;
let queue: Queue;
let raw: Redis;
let now = START;
let log: Logger;
beforeEach(async () => {
  now = START;
  redis = await startRedis({ clock: () => now });
  queue = await redis.open();
  raw = new Redis(redis.socket);
  mkdirSync(join(redis.stateDir, 'log'));
  log = openLog(join(redis.stateDir, 'log/gridmanager.log'), 'info', LOG_BYTES);
});
afterEach(async () => {
  raw.disconnect();
  await redis.stop();
});

interface Size {
  readonly keys: number;
  /** Of them: BullMQ's. */
  readonly workKeys: number;
  readonly bytes: number;
  readonly events: number;
  readonly historyKb: number;
  readonly aofKb: number;
  readonly logKb: number;
  /** Of this process, MB. */
  readonly heap: number;
}

async function size(): Promise<Size> {
  await raw.call('MEMORY', 'PURGE');
  const bytes = Number(/used_memory_dataset:(\d+)/.exec(await raw.info('memory'))?.[1]);
  await raw.bgrewriteaof();
  for (let busy = true; busy; ) busy = /aof_rewrite_in_progress:1/.test(await raw.info('persistence'));
  return {
    keys: await raw.dbsize(),
    workKeys: (await raw.keys('*year*')).length,
    bytes,
    events: await raw.xlen('gryphus:events'),
    historyKb: kb('history'),
    aofKb: kb('redis/appendonlydir'),
    logKb: kb('log'),
    heap: process.memoryUsage().heapUsed / 1e6,
  };
}

function kb(dir: string): number {
  const path = join(redis.stateDir, dir);
  return readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0) / 1000;
}

/** A GridManager of that day: each work loop of each site is woken, fails once a week, and is woken again while it runs. */
async function workLoops(n: number): Promise<void> {
  const work = queue.work('year');
  let runs = 0;
  const handler = async ({ kind, id }: WorkItem): Promise<undefined> => {
    runs += 1;
    if (runs <= SITES) await work.wake(kind, id, null);
    if (n % 7 === 0 && runs > SITES && runs % 5 === 0) throw new Error('the site is down');
    return undefined;
  };
  const runner = await work.run(Object.fromEntries(LOOPS.map((loop) => [loop, handler])), { fresh: true });
  for (let site = 0; site < SITES; site++)
    for (const loop of LOOPS) await work.add(loop, `site${site}`, null, n % 2 === 0 ? {} : { delayMs: 1 });
  await until(() => runs >= SITES * LOOPS.length);
  await runner.close();
  await work.close();
}

async function day(n: number): Promise<void> {
  now = START + n * DAY_MS;
  // A clock that a change of its zone or a wrong battery sets back for an hour, 50 times a year.
  if (n % 7 === 3) now -= 3_600_000;
  const { cluster } = await queue.submit({ clusterAd: { Owner: '"y"', Cmd: '"/bin/x"' }, procs: procs(JOBS_A_DAY) });
  const ids = Array.from({ length: JOBS_A_DAY }, (_, proc) => ({ cluster, proc }));
  await queue.transitionMany(ids.map((id) => ({ id, event: 'remove', set: { RemoveReason: '"done"' } })));
  expect(await queue.retire(ids)).toBe(JOBS_A_DAY);
  // Eight log-ins, and a proxy that is renewed once a day at each of ten sites.
  for (let i = 0; i < 8; i++) await stayUntil(queue, `identity-${i}`, now);
  for (let site = 0; site < 10; site++) {
    await SITE_STATUS.set(queue.kv, `me/site${site}`, { connection: 'up', message: '', since: now });
    await CREDENTIAL_COPIES.set(queue.kv, `me\tsite${site}\tproxy`, { version: String(n), file: 'f' });
  }
  await queue.notice({ about: 'fault', message: `day ${n}` });
  await workLoops(n);
  for (let i = 0; i < JOBS_A_DAY; i++) log.info({ day: n, job: i }, 'what a daemon says of a job');
  await queue.trimEvents(EVENTS);
  await queue.history.prune(KEEP);
}

describe.skipIf(!SLOW)(`a year of ten million jobs, scaled 1:${FACTOR}`, () => {
  it('leaves the queue, its file, its events and the history no larger than the first quarter did', async () => {
    for (let n = 0; n < 120; n++) await day(n);
    const before = await size();
    for (let n = 120; n < 365; n++) await day(n);
    const after = await size();
    process.stderr.write(`day 120 ${JSON.stringify(before)}\nday 365 ${JSON.stringify(after)}\n`);
    // An item that a worker's end left is dropped by the next.
    expect(after.keys).toBeLessThanOrEqual(before.keys + SITES * LOOPS.length);
    expect(after.bytes).toBeLessThan(before.bytes * 1.1 + 50_000);
    // The stream is trimmed by whole nodes of 100 entries, each of which is one change of many jobs.
    expect(after.events).toBeLessThanOrEqual(EVENTS + 200);
    expect(after.aofKb).toBeLessThan(before.aofKb * 1.1 + 20);
    expect(after.historyKb).toBeLessThan(before.historyKb * 1.5 + 50);
    expect(after.workKeys).toBeLessThanOrEqual(before.workKeys + LOOPS.length);
    expect(before.workKeys).toBeGreaterThan(0);
    expect(before.logKb).toBeGreaterThan(LOG_BYTES / 1000);
    expect(after.logKb).toBeLessThan((2 * LOG_BYTES) / 1000 + 1);
    expect(after.heap).toBeLessThan(before.heap + 30);
    // What was kept is still read, newest first.
    let read = 0;
    for await (const _ of queue.history.read({ limit: 200 })) read += 1;
    expect(read).toBe(200);
  }, 900_000);
});
