import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Change, JobHead, JobRecord, Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { all, procs } from './all.ts';

let redis: TestRedis;
let queue: Queue;
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
});
afterAll(() => redis.stop());

const PLACE = { manager: 'frida', site: 'hpc' };

async function submitted(count: number): Promise<number> {
  return (await queue.submit({ clusterAd: { Owner: '"frida"' }, procs: procs(count), ...PLACE })).cluster;
}

async function found(cluster: number): Promise<readonly JobHead[]> {
  return (await all(queue.heads(cluster))).flat();
}

async function expected(cluster: number): Promise<readonly JobHead[]> {
  const read: readonly JobRecord[] = (await all(queue.queryChunks({ clusters: [cluster] }))).flat();
  return read.map(({ id, state }) => ({ id, state }));
}

describe('the heads of a cluster', () => {
  it('are those of its jobs, in order, beyond the pages and exchanges of the index', async () => {
    const cluster = await submitted(40_000);
    const changes: Change[] = [];
    for (let proc = 0; proc < 40_000; proc++) {
      const id = { cluster, proc };
      if (proc % 7 === 3 || (proc > 16_000 && proc < 17_000)) changes.push({ id, event: 'hold' });
      else if (proc > 20_000 && proc < 30_000) changes.push({ id, event: 'remove' });
      if (proc % 1024 === 1023) changes.push({ id, set: { JobPrio: '5' } });
    }
    await queue.transitionMany(changes);
    const gone = changes.flatMap(({ id, event }) => (event === 'remove' ? [id] : []));
    await queue.retire(gone);
    const heads = await found(cluster);
    expect(heads.length).toBe(40_000 - gone.length);
    expect(heads).toEqual(await expected(cluster));
  });

  it('are read with the jobs if they have too many groups', async () => {
    const cluster = await submitted(300);
    await queue.transitionMany(
      Array.from({ length: 300 }, (_, proc) => ({ id: { cluster, proc }, set: { JobPrio: String(proc) } })),
    );
    expect((await found(cluster)).map(({ id, state }) => ({ id, state }))).toEqual(await expected(cluster));
  });

  it('are none if the cluster is gone', async () => {
    expect(await found(4_000_000)).toEqual([]);
  });

  it('name each job once while jobs move', async () => {
    const cluster = await submitted(40_000);
    const heads = queue.heads(cluster)[Symbol.asyncIterator]();
    const seen: number[] = [];
    for (let turn = 0; ; turn++) {
      const next = await heads.next();
      if (next.done) break;
      seen.push(...next.value.map(({ id }) => id.proc));
      await queue.transitionMany(
        Array.from(
          { length: 40_000 },
          (_, proc): Change => ({
            id: { cluster, proc },
            event: turn % 2 === 0 ? 'hold' : 'release',
          }),
        ),
      );
    }
    expect(seen).toEqual(Array.from({ length: 40_000 }, (_, proc) => proc));
  });
});
