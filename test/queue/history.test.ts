import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { JobId } from '../../src/job/ids.ts';
import type { HistoryQuery, Queue } from '../../src/queue/api.ts';
import { HistorySnapshot } from '../../src/queue/history-snapshot.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { all, procs } from './all.ts';

let redis: TestRedis;
let queue: Queue;
let raw: Redis;
let now = Date.UTC(2026, 9, 31, 23, 59);
beforeAll(async () => {
  redis = await startRedis({ clock: () => now });
  queue = await redis.open();
  raw = new Redis(redis.socket);
});
afterAll(async () => {
  raw.disconnect();
  await redis.stop();
});

async function ended(count: number, ad: Record<string, string> = {}): Promise<JobId[]> {
  const { cluster } = await queue.submit({ clusterAd: { Owner: '"h"', Cmd: '"é\n"', ...ad }, procs: procs(count) });
  const ids = Array.from({ length: count }, (_, proc) => ({ cluster, proc }));
  await queue.transitionMany(ids.map((id) => ({ id, event: 'remove', set: { RemoveReason: '"why"' } })));
  return ids;
}

const file = (name = '2026-10.jsonl') => join(redis.stateDir, 'history', name);
const jobLines = (name?: string) =>
  readFileSync(file(name), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{"j":'));

describe('the history', () => {
  it('has a job whole, once it has left the queue', async () => {
    const ids = await ended(3);
    const [before] = await queue.get(ids.slice(0, 1));
    expect(await queue.retire([...ids, { cluster: 99, proc: 0 }])).toBe(3);
    expect(await queue.get(ids)).toEqual([]);
    expect(await queue.cluster(ids[0]?.cluster ?? 0)).toBeUndefined();
    const kept = await all(queue.history.read());
    expect(kept.map(({ id }) => id)).toEqual([...ids].reverse());
    expect(kept.at(-1)?.attrs.toRecord()).toEqual(before?.attrs.toRecord());
    expect(kept.at(-1)).toMatchObject({ state: 'removed', retired: now / 1000 });
    expect(statSync(file()).mode & 0o077).toBe(0);
  });

  it('takes neither what lives nor what is to stay', async () => {
    const stay = await ended(1, { LeaveJobInQueue: 'TRUE' });
    const { cluster } = await queue.submit({ clusterAd: {}, procs: procs(1) });
    expect(await queue.retire([...stay, { cluster, proc: 0 }])).toBe(0);
    expect(await queue.get([...stay, { cluster, proc: 0 }])).toHaveLength(2);
  });

  it('writes a cluster’s ad once, and again when it was edited', async () => {
    const [a, b, c] = await ended(3);
    if (!a || !b || !c) throw new Error('three');
    await queue.retire([a]);
    await queue.retire([b]);
    await queue.editCluster(a.cluster, { Cmd: '"new"' });
    await queue.retire([c]);
    const kept = await all(queue.history.read({ clusters: [a.cluster] }));
    expect(kept.map(({ attrs }) => attrs.get('Cmd'))).toEqual(['"new"', '"é\n"', '"é\n"']);
    const ads = readFileSync(file(), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(`{"c":${a.cluster},`));
    expect(ads).toHaveLength(2);
  });

  it('continues after a crash between the file and the queue, and writes no job twice', async () => {
    const ids = await ended(4);
    const { file: name, size } = await raw.hgetall('gryphus:history');
    const [{ cluster } = { cluster: 0 }] = ids;
    const before = await raw.hmget(`gryphus:j:${cluster}`, '0', '1');
    await queue.retire(ids.slice(0, 2));
    // As if it had died before the queue was updated: the two are back, the end of the file is torn.
    await raw.hset('gryphus:history', 'file', name ?? '', 'size', size ?? '');
    for (const proc of [0, 1]) {
      await raw.hset(`gryphus:j:${cluster}`, String(proc), before[proc] ?? '');
      await raw.hincrby(`gryphus:c:${cluster}`, '#removed', 1);
      await raw.hincrby('gryphus:places', '0:0:removed', 1);
    }
    await raw.hset(`gryphus:g:${cluster}:0:0:0:removed`, '0', '\x0f');
    appendFileSync(file(), '{"j":"77.0","torn');
    expect(await queue.retire(ids)).toBe(4);
    const mine = jobLines().filter((line) => line.startsWith(`{"j":"${cluster}.`));
    expect(mine).toHaveLength(4);
    expect(readFileSync(file(), 'utf8')).not.toContain('torn');
    const kept = await all(queue.history.read({ clusters: [cluster] }));
    expect(new Set(kept.map(({ id }) => id.proc))).toEqual(new Set([0, 1, 2, 3]));
    expect(kept).toHaveLength(4);
  });

  it('counts what a crash left between the file and the queue, whichever jobs are retired next', async () => {
    const lost = await ended(600);
    const others = await ended(2);
    const [{ cluster } = { cluster: 0 }] = lost;
    const mark = await raw.hgetall('gryphus:history');
    const before = await raw.hgetall(`gryphus:j:${cluster}`);
    await queue.retire(lost);
    await raw.hset('gryphus:history', mark);
    await raw.hset(`gryphus:j:${cluster}`, before);
    for (const { proc } of lost) await raw.zadd(`gryphus:g:${cluster}:0:0:0:removed`, proc, String(proc));
    await raw.hset(`gryphus:c:${cluster}`, { '#removed': 600 });
    await raw.hincrby('gryphus:places', '0:0:removed', 600);
    await queue.retire(others);
    await queue.retire(lost);
    expect(jobLines().filter((line) => line.startsWith(`{"j":"${cluster}.`))).toHaveLength(600);
    expect(await queue.get(lost)).toEqual([]);
  });

  it('is read whole without its index, or with a torn one, and finds one job among many', async () => {
    const ids = await ended(2500);
    await queue.retire(ids);
    const total = jobLines().length;
    const index = file('2026-10.index');
    expect(statSync(index).size).toBe(total * 32);
    for (const size of [0, 31, 32 * 7 + 5]) {
      truncateSync(index, size);
      const found = await all(queue.history.read());
      expect(found).toHaveLength(total);
      expect(found.slice(0, 3).map(({ id }) => id)).toEqual([...ids].reverse().slice(0, 3));
    }
    writeFileSync(index, Buffer.alloc(32 * 9000, 0xff));
    expect(await all(queue.history.read({ limit: 2 }))).toHaveLength(2);
    await queue.retire(await ended(1));
    expect(statSync(index).size).toBe((total + 1) * 32);
    const wanted = ids[1234] ?? { cluster: 0, proc: 0 };
    const [one, ...others] = await all(queue.history.read({ ids: [wanted] }));
    expect(one?.attrs.get('Args')).toBe('"1234"');
    expect(others).toEqual([]);
  });

  it('begins a file each month, newest first over all', async () => {
    now = Date.UTC(2026, 10, 1, 0, 1);
    const ids = await ended(1);
    await queue.retire(ids);
    expect(readdirSync(join(redis.stateDir, 'history')).sort()).toEqual([
      '2026-10.index',
      '2026-10.jsonl',
      '2026-11.index',
      '2026-11.jsonl',
      'ranges',
    ]);
    const first = await all(queue.history.read({ limit: 2 }));
    expect(first.map(({ retired }) => new Date(retired * 1000).getUTCMonth())).toEqual([10, 9]);
  });

  it('keeps as many jobs as it was told, and for as long, a file at a time', async () => {
    const left = async () => (await all(queue.history.read())).length;
    // Clusters of the tests before are still in the queue.
    rmSync(join(redis.stateDir, 'history'), { recursive: true });
    await queue.history.prune({ jobs: 16, seconds: 1e9, recent: 0 });
    for (let i = 0; i < 30; i++) await queue.retire(await ended(1));
    await queue.history.prune({ jobs: 16, seconds: 1e9, recent: 0 });
    // Two in a file.
    expect(await left()).toBeGreaterThanOrEqual(16);
    expect(await left()).toBeLessThanOrEqual(18);
    const [newest] = await all(queue.history.read({ limit: 1 }));
    // A cluster's ad is found in the file that contains its jobs.
    const ids = await ended(5);
    for (const id of ids) await queue.retire([id]);
    const found = await all(queue.history.read({ ids }));
    expect(found.map(({ attrs }) => attrs.get('Cmd'))).toEqual(ids.map(() => '"é\n"'));
    expect(await all(queue.history.read({ ids: newest ? [newest.id] : [] }))).toHaveLength(1);
    now += 3600_000;
    await queue.history.prune({ jobs: 16, seconds: 1, recent: 0 });
    expect(await left()).toBeLessThanOrEqual(2);
    await queue.history.prune({ jobs: 100_000, seconds: 1e9, recent: 0 });
  });

  it('keeps, whatever their number, what ended lately and what is of clusters that are still in the queue', async () => {
    await queue.history.prune({ jobs: 16, seconds: 1e9, recent: 0 });
    const open = await ended(30);
    for (const id of open.slice(1)) await queue.retire([id]);
    const kept = async () => (await all(queue.history.read({ clusters: [open[0]?.cluster ?? 0] }))).length;
    const others = await ended(40);
    for (const id of others) await queue.retire([id]);
    now += 3600_000;
    await queue.history.prune({ jobs: 16, seconds: 1e9, recent: 60 });
    expect(await kept()).toBe(29);
    await queue.retire(open.slice(0, 1));
    await queue.history.prune({ jobs: 16, seconds: 1e9, recent: 7200 });
    expect(await kept()).toBe(30);
    await queue.history.prune({ jobs: 16, seconds: 1e9, recent: 0 });
    expect(await kept()).toBeLessThan(10);
    await queue.history.prune({ jobs: 100_000, seconds: 1e9, recent: 0 });
  });

  it('opens few of its files to find a job, and those of which it is not certain', async () => {
    await queue.history.prune({ jobs: 80, seconds: 1e9, recent: 0 });
    const ids: JobId[] = [];
    for (let i = 0; i < 60; i++) {
      const [id] = await ended(1);
      if (!id) throw new Error('no job');
      ids.push(id);
      await queue.retire([id]);
    }
    const find = async (id: JobId | undefined) => {
      const open = vi.spyOn(HistorySnapshot, 'open');
      const found = await all(queue.history.read({ ids: id ? [id] : [] }));
      const opened = open.mock.calls.length;
      open.mockRestore();
      return { found: found.map((job) => job.id), opened };
    };
    const old = ids[5];
    const here = await find(old);
    expect(here.found).toEqual([old]);
    expect(here.opened).toBeLessThanOrEqual(3);
    expect((await all(queue.history.read({ clusters: [old?.cluster ?? 0] }))).map(({ id }) => id)).toEqual([old]);
    // It may have grown since: its line says nothing then.
    const ranges = file('ranges');
    writeFileSync(ranges, readFileSync(ranges, 'utf8').replaceAll(/ \d+ \d+\.\d+ /g, ' 9 1000000.0 '));
    expect((await find(old)).found).toEqual([old]);
    rmSync(ranges);
    const without = await find(old);
    expect(without.found).toEqual([old]);
    expect(without.opened).toBeGreaterThan(here.opened);
    await queue.history.prune({ jobs: 100_000, seconds: 1e9, recent: 0 });
  });

  it('archives full files, which are read as before, by gzip too; damage costs only the jobs that it hit', async () => {
    rmSync(join(redis.stateDir, 'history'), { recursive: true });
    // Files of two thousand jobs and more than one piece.
    const few = { jobs: 16_000, seconds: 1e9, recent: 0 };
    await queue.history.prune(few);
    const long = { Long: JSON.stringify('x'.repeat(100)) };
    const ids: JobId[] = [];
    for (let i = 0; i < 3; i++) {
      const some = await ended(2100, long);
      ids.push(...some);
      await queue.retire(some);
    }
    const shown = async (query: HistoryQuery = {}) =>
      (await all(queue.history.read(query))).map(({ id, attrs, retired }) => [id, attrs.toRecord(), retired]);
    const before = await shown();
    expect(before).toHaveLength(6300);
    const plain = readFileSync(file('2026-11.jsonl'));
    // A reader that has listed the files goes on in the archive.
    const reader = queue.history.read()[Symbol.asyncIterator]();
    await reader.next();
    await queue.history.prune(few);
    const names = readdirSync(join(redis.stateDir, 'history')).sort();
    expect(names).toEqual([
      '2026-11-0002.index.gz',
      '2026-11-0002.jsonl.gz',
      '2026-11-0003.index',
      '2026-11-0003.jsonl',
      '2026-11.index.gz',
      '2026-11.jsonl.gz',
      'ranges',
    ]);
    expect(gunzipSync(readFileSync(file('2026-11.jsonl.gz')))).toEqual(plain);
    expect(statSync(file('2026-11.jsonl.gz')).size * 6).toBeLessThan(plain.length);
    let rest = 0;
    while (!(await reader.next()).done) rest += 1;
    expect(rest).toBe(6299);
    expect(await shown()).toEqual(before);
    for (const n of [0, 1033, 2099, 2100, 4000, 6299])
      expect(await shown({ ids: ids.slice(n, n + 1) })).toEqual([before[6299 - n]]);
    const open = vi.spyOn(HistorySnapshot, 'open');
    await shown({ ids: ids.slice(0, 1) });
    expect(open.mock.calls.length).toBeLessThanOrEqual(2);
    open.mockRestore();
    // A crash: between the archive and the removal of the file, and in the middle of an archive.
    writeFileSync(file('2026-11.jsonl'), plain);
    writeFileSync(file('2026-11-0003.jsonl.gz.0123456789ab.new'), 'half');
    expect(await shown()).toEqual(before);
    await queue.history.prune(few);
    expect(readdirSync(join(redis.stateDir, 'history')).sort()).toEqual(names);
    expect(await shown()).toEqual(before);
    const [archive, index] = [file('2026-11.jsonl.gz'), file('2026-11.index.gz')];
    const [bytes, records] = [readFileSync(archive), readFileSync(index)];
    const warned: string[] = [];
    const listen = ({ message }: Error) => warned.push(message);
    process.on('warning', listen);
    try {
      writeFileSync(archive, Buffer.from(bytes).fill(7, bytes.length - 200, bytes.length - 100));
      const left = (await shown()).length;
      expect(left).toBeLessThan(before.length);
      expect(left).toBeGreaterThan(before.length - 2100);
      await vi.waitFor(() => expect(warned).toHaveLength(1));
      expect(warned[0]).toMatch(
        /The history .*\.jsonl is damaged in line \d+ and \d+ more: \d+ jobs of it are not shown/,
      );
      writeFileSync(index, Buffer.from(records).fill(7, 20, 40));
      expect(await shown()).toHaveLength(before.length - 2100);
      await vi.waitFor(() => expect(warned).toHaveLength(2));
      expect(warned[1]).toContain(index);
    } finally {
      process.removeListener('warning', listen);
      writeFileSync(archive, bytes);
      writeFileSync(index, records);
    }
    await queue.history.prune({ jobs: 2500, seconds: 1e9, recent: 0 });
    expect(await shown()).toEqual(before.slice(0, 4200));
    now += 3600_000;
    await queue.history.prune({ jobs: 100_000, seconds: 1, recent: 0 });
    expect(await shown()).toEqual(before.slice(0, 2100));
  });

  it('continues after a crash whose jobs are in a file that is archived meanwhile', async () => {
    await queue.history.prune({ jobs: 8, seconds: 1e9, recent: 0 });
    const ids = await ended(3);
    const lost = ids.slice(0, 2);
    const [{ cluster } = { cluster: 0 }] = ids;
    await queue.retire(await ended(1));
    const before = await raw.hgetall(`gryphus:j:${cluster}`);
    await queue.retire(lost);
    const { file: name = '' } = await raw.hgetall('gryphus:history');
    await queue.retire(await ended(1));
    await queue.history.prune({ jobs: 100_000, seconds: 1e9, recent: 0 });
    expect(existsSync(file(`${name}.gz`))).toBe(true);
    // As if it had died before the queue was updated.
    await raw.hset('gryphus:history', { file: name, size: 0 });
    await raw.hset(`gryphus:j:${cluster}`, before);
    await raw.hset(`gryphus:g:${cluster}:0:0:0:removed`, '0', '\x07');
    await raw.hset(`gryphus:c:${cluster}`, { '#0:0:0:removed': 3 });
    await raw.hincrby('gryphus:places', '0:0:removed', 2);
    expect(await queue.get(lost)).toHaveLength(2);
    expect(await queue.retire(ids)).toBe(3);
    expect(await queue.get(ids)).toEqual([]);
    expect(await all(queue.history.read({ clusters: [cluster] }))).toHaveLength(3);
  });

  it('continues if its files have been deleted', async () => {
    rmSync(join(redis.stateDir, 'history'), { recursive: true });
    const ids = await ended(2);
    expect(await queue.retire(ids)).toBe(2);
    expect(existsSync(file('2026-11.jsonl'))).toBe(true);
    expect(await all(queue.history.read())).toHaveLength(2);
  });
});
