import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';

let redis: TestRedis;
let queue: Queue;
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
});
afterAll(() => redis.stop());

async function all<T>(some: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of some) found.push(one);
  return found;
}

describe('a submit', () => {
  it('gives each job the cluster’s attributes under its own', async () => {
    const { cluster, procs } = await queue.submit({
      clusterAd: { Owner: '"frida"', Cmd: '"/bin/échø \\"x\\""', Args: '"0"', JobPrio: '3', JobBatchName: '"π\\\\"' },
      procs: [{ attrs: { Args: '"a b"' } }, { attrs: { cmd: null, JobPrio: '7', Out: '"\ud800/x"' } }],
      manager: 'frida',
      site: 'hpc',
    });
    expect(procs).toBe(2);
    const [first, second] = await queue.get([
      { cluster, proc: 0 },
      { cluster, proc: 1 },
    ]);
    expect(first?.attrs.toRecord()).toEqual({
      Owner: '"frida"',
      Cmd: '"/bin/échø \\"x\\""',
      Args: '"a b"',
      JobPrio: '3',
      JobBatchName: '"π\\\\"',
      ClusterId: String(cluster),
      ProcId: '0',
      JobStatus: '1',
      EnteredCurrentStatus: String(first?.since),
      GryphusState: '"idle"',
      GryphusSite: '"hpc"',
      GryphusAttempt: '0',
    });
    expect(second?.attrs.get('CMD')).toBeUndefined();
    expect(second?.attrs.get('Out')).toBe('"\uFFFD/x"');
    expect(second).toMatchObject({ state: 'idle', manager: 'frida', site: 'hpc', priority: 7, attempt: 0 });
    const [record] = await queue.clusters();
    expect(record).toMatchObject({
      cluster,
      owner: 'frida',
      batchName: 'π\\',
      counts: { idle: 2 },
      nextProc: 2,
      total: 2,
    });
    const next = await queue.nextJobs({ manager: 'frida', site: 'hpc', limit: 5 });
    expect(next.map(({ id }) => id.proc)).toEqual([1, 0]);
  });
});

describe('a transition', () => {
  it('follows the table of life, and says why not', async () => {
    const { cluster } = await queue.submit({
      clusterAd: { Owner: '"x"' },
      procs: [{ attrs: {} }],
      manager: 'm',
      site: 's',
    });
    const id = { cluster, proc: 0 };
    expect(await queue.transition({ id, event: 'take', set: { GridJobId: '"a/b"' } })).toEqual({
      ok: true,
      state: 'preparing',
      attempt: 1,
    });
    expect(await queue.transition({ id, event: 'ended' })).toMatchObject({
      ok: false,
      why: 'wrong-state',
      state: 'preparing',
    });
    expect(await queue.transition({ id: { cluster, proc: 9 }, event: 'take' })).toMatchObject({ why: 'no-such-job' });
    expect(await queue.transition({ id, event: 'prepared', attempt: 2 })).toMatchObject({ why: 'wrong-attempt' });
    expect(await queue.transition({ id, set: { gridjobid: null }, info: { a: [] } })).toMatchObject({ ok: true });
    const [job] = await all(queue.query({ states: ['preparing'] }));
    expect(job?.id).toEqual(id);
    expect(job?.attrs.get('GridJobId')).toBeUndefined();
    const events = (await queue.readEvents('0')).map(({ event }) => event).filter((e) => 'job' in e);
    expect(events).toMatchObject([
      {
        type: 'transition',
        job: `${cluster}.0`,
        event: 'take',
        from: 'idle',
        to: 'preparing',
        attempt: 1,
        set: { GridJobId: '"a/b"' },
      },
      { type: 'edited', job: `${cluster}.0`, set: { gridjobid: null }, info: { a: [] } },
    ]);
  });
});
