import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Queue } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { all, procs } from './all.ts';

let redis: TestRedis;
let queue: Queue;
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
});
afterAll(() => redis.stop());

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

  it('refuses to set what follows from the state', async () => {
    const id = { cluster: 1, proc: 0 };
    await expect(queue.transition({ id, set: { jobstatus: '2' } })).rejects.toMatchObject({ code: 'bad-input' });
    await expect(queue.editCluster(1, { JobPrio: '2' })).rejects.toMatchObject({ code: 'bad-input' });
  });

  it('gives idle and held jobs elsewhere, no others', async () => {
    const { cluster } = await queue.submit({ clusterAd: { Owner: '"r"' }, procs: procs(2) });
    const ids = [0, 1].map((proc) => ({ cluster, proc }));
    await queue.transition({ id: { cluster, proc: 1 }, event: 'take' });
    const results = await queue.route(ids, { manager: 'ρ', site: 'far' });
    expect(results).toMatchObject([{ ok: true }, { ok: false, why: 'wrong-state', state: 'preparing' }]);
    expect((await queue.nextJobs({ manager: 'ρ', site: 'far', limit: 9 })).map(({ id }) => id)).toEqual([ids[0]]);
  });

  it('refuses to begin a job that was placed elsewhere since it was read', async () => {
    const here = { manager: 'm', site: 'one' };
    const { cluster } = await queue.submit({ clusterAd: { Owner: '"r"' }, ...here, procs: procs(1) });
    const id = { cluster, proc: 0 };
    const [read] = await queue.nextJobs({ ...here, limit: 1 });
    await queue.route([id], { manager: 'm', site: 'two' });
    expect(await queue.transition({ id: read?.id ?? id, event: 'take', from: 'idle', at: here })).toMatchObject({
      ok: false,
      why: 'wrong-state',
    });
    const there = { manager: 'm', site: 'two' };
    expect(await queue.transition({ id, event: 'take', from: 'idle', at: there })).toMatchObject({ ok: true });
  });

  it('lets no job go that is wanted elsewhere without saying where it goes', async () => {
    const { cluster } = await queue.submit({ clusterAd: { Owner: '"r"' }, site: 'one', procs: procs(1) });
    const id = { cluster, proc: 0 };
    await queue.transition({ id, event: 'take' });
    await queue.transition({ id, event: 'takeback' });
    await queue.transition({ id, from: 'withdrawing', set: { GryphusMoveTo: '"two"' } });
    expect(await queue.transition({ id, event: 'withdrawn' })).toMatchObject({ ok: false, why: 'wrong-state' });
    const route = { manager: 'm', site: 'two' };
    const gone = await queue.transition({ id, event: 'withdrawn', route, set: { GryphusMoveTo: null } });
    expect(gone).toMatchObject({ ok: true, state: 'idle' });
  });
});

describe('a cluster', () => {
  it('is edited for all its jobs at once', async () => {
    const { cluster } = await queue.submit({ clusterAd: { Owner: '"x"', Rank: '0' }, procs: procs(2) });
    expect(await queue.editCluster(cluster, { rank: '7', JobBatchName: '"a \\"b\\""', Owner: null })).toBe(true);
    const jobs = await all(queue.query({ clusters: [cluster] }));
    expect(jobs.map(({ attrs }) => [attrs.get('Rank'), attrs.get('Owner')])).toEqual([
      ['7', undefined],
      ['7', undefined],
    ]);
    expect((await queue.cluster(cluster))?.batchName).toBe('a "b"');
    expect(await queue.editCluster(999_999, { rank: '1' })).toBe(false);
  });
});

describe('a query', () => {
  it('gives each job once and in order, over clusters small and large, dense and sparse', async () => {
    const mine = { Owner: '"query"' };
    const sizes = [1, 3, 25_000, 1, 1200, 2];
    const clusters: number[] = [];
    for (const size of sizes) clusters.push((await queue.submit({ clusterAd: mine, procs: procs(size) })).cluster);
    const sparse = Array.from({ length: 21_000 }, (_, i) => ({ attrs: {}, proc: i * 5 }));
    const { cluster: last } = await queue.submit({ clusterAd: mine, procs: sparse });
    const wanted = [
      ...clusters.flatMap((cluster, i) => Array.from({ length: sizes[i] ?? 0 }, (_, proc) => `${cluster}.${proc}`)),
      ...sparse.map(({ proc }) => `${last}.${proc}`),
    ];
    const found = (await all(queue.query({ owner: 'query' }))).map(({ id }) => `${id.cluster}.${id.proc}`);
    expect(found).toEqual(wanted);
    const few = await all(queue.query({ owner: 'query', where: (job) => job.id.proc % 2 === 1, limit: 3 }));
    expect(few.map(({ id }) => id.proc)).toEqual([1, 1, 3]);
    const ids = [
      { cluster: last, proc: 10 },
      { cluster: 0, proc: 0 },
      { cluster: last, proc: 10 },
    ];
    expect((await all(queue.query({ ids }))).map(({ id }) => id)).toEqual([{ cluster: last, proc: 10 }]);
  });
});

describe('two who materialize', () => {
  it('make no proc twice', async () => {
    const { cluster } = await queue.submit({
      clusterAd: { Owner: '"l"' },
      procs: procs(2),
      digest: 'queue 10',
      total: 10,
    });
    const [waiting] = await queue.unmaterialized();
    expect(waiting).toMatchObject({ cluster, nextProc: 2, total: 10, digest: 'queue 10' });
    const other = await redis.open();
    const both = await Promise.all(
      [queue, other].map((one) => one.materialize(cluster, { nextProc: 2, procs: procs(8), done: false })),
    );
    expect(both.filter(({ ok }) => ok)).toHaveLength(1);
    expect((await queue.cluster(cluster))?.counts).toEqual({ idle: 10 });
    expect(await queue.materialize(cluster, { nextProc: 10, procs: [], done: true })).toEqual({
      ok: true,
      nextProc: 10,
    });
    expect(await queue.unmaterialized()).toEqual([]);
  });
});

describe('a proc that is removed before it is made', () => {
  it('is made as removed, which whoever makes procs must know of, and is told as any removal', async () => {
    const { cluster } = await queue.submit({
      clusterAd: { Owner: '"m"' },
      procs: procs(2),
      digest: 'queue 3000',
      total: 3000,
    });
    expect(await queue.unwant(cluster, [1, 2, 4, 2048, 3000])).toEqual([1, 3000]);
    expect(await queue.unwanted(cluster, 0, 3000)).toEqual(new Set([2, 4, 2048]));
    expect(await queue.unwanted(cluster, 3, 2048)).toEqual(new Set([4]));
    const make = (states: readonly ('idle' | 'removed')[]) =>
      queue.materialize(cluster, {
        nextProc: 2,
        procs: states.map((state) => ({ attrs: {}, state })),
        done: false,
        removedBecause: 'via rm',
      });
    expect(await make(['idle', 'idle', 'removed'])).toMatchObject({ ok: false, why: 'conflict', nextProc: 2 });
    const at = await queue.position();
    expect(await make(['removed', 'idle', 'removed'])).toEqual({ ok: true, nextProc: 5 });
    expect((await queue.cluster(cluster))?.counts).toEqual({ idle: 3, removed: 2 });
    const events = (await queue.readEvents(at)).map(({ event }) => event);
    const told = events.flatMap((event) => (event.type === 'transition' ? [[event.job, event.to, event.set]] : []));
    const set = { RemoveReason: '"via rm"' };
    expect([events[0]?.type, told]).toEqual([
      'materialized',
      [2, 4].map((proc) => [`${cluster}.${proc}`, 'removed', set]),
    ]);
    expect(await queue.unwanted(cluster, 0, 3000)).toEqual(new Set([2048]));
    expect(await queue.unwant(cluster, [2, 3])).toEqual([2, 3]);
    expect(await queue.retire([2, 4].map((proc) => ({ cluster, proc })))).toBe(2);
    const [job] = await all(queue.history.read({ ids: [{ cluster, proc: 4 }] }));
    expect([job?.state, job?.attrs.get('RemoveReason')]).toEqual(['removed', '"via rm"']);
    await queue.materialize(cluster, { nextProc: 5, procs: [], done: true });
    expect(await queue.unwanted(cluster, 0, 3000)).toEqual(new Set());
  });
});

describe('a job that left the queue', () => {
  it('comes back under its id, held, beside its cluster or with it, and takes the attempt that is adopted', async () => {
    const { cluster } = await queue.submit({
      clusterAd: { Owner: '"frida"', Cmd: '"/bin/true"', Args: '"shared"', JobBatchName: '"back"' },
      procs: [{ attrs: { Args: '"0"', JobPrio: '4' } }, { attrs: {} }],
      manager: 'frida',
      site: 'hpc',
    });
    const ids = [0, 1].map((proc) => ({ cluster, proc }));
    const remove = async (id: { cluster: number; proc: number }) => {
      await queue.transition({ id, event: 'remove' });
      expect(await queue.retire([id])).toBe(1);
    };
    const back = async (proc: number) => {
      for await (const { attrs } of queue.history.read({ ids: [{ cluster, proc }] })) {
        return queue.restore({
          id: { cluster, proc },
          attrs: attrs.toRecord(),
          attempt: 3,
          manager: 'gerda',
          site: 'x',
        });
      }
      throw new Error('not in the history');
    };
    await remove({ cluster, proc: 0 });
    expect(await back(0)).toBe(true);
    expect(await back(0)).toBe(false);
    for (const id of ids) await remove(id);
    expect(await queue.cluster(cluster)).toBe(undefined);
    expect(await back(0)).toBe(true);
    expect(await back(1)).toBe(true);
    const jobs = await queue.get(ids);
    expect(jobs.map(({ attrs, ...job }) => ({ ...job, args: attrs.get('Args'), owner: attrs.get('Owner') }))).toEqual([
      expect.objectContaining({ state: 'held', attempt: 3, priority: 4, manager: 'gerda', site: 'x', args: '"0"' }),
      expect.objectContaining({ state: 'held', attempt: 3, priority: 0, args: '"shared"', owner: '"frida"' }),
    ]);
    expect(await queue.summaries([cluster])).toMatchObject([
      { owner: 'frida', batchName: 'back', counts: { held: 2 }, nextProc: 2, total: 2 },
    ]);
    const [id = { cluster, proc: 0 }] = ids;
    const route = { manager: 'frida', site: 'hpc' };
    expect(await queue.transition({ id, event: 'adopted', route })).toMatchObject({ ok: false, why: 'wrong-state' });
    expect(await queue.transition({ id, event: 'release', adopt: 3 })).toMatchObject({ ok: false, why: 'wrong-state' });
    expect(await queue.transition({ id, event: 'adopted', adopt: 2, route })).toMatchObject({
      ok: false,
      why: 'wrong-attempt',
    });
    expect(await queue.transition({ id, event: 'adopted', adopt: 5, route })).toEqual({
      ok: true,
      state: 'committed',
      attempt: 5,
    });
    expect(await queue.get([id])).toMatchObject([{ state: 'committed', attempt: 5, manager: 'frida', site: 'hpc' }]);
  });
});
