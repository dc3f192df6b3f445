import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { act } from '../../src/client/act.ts';
import type { Change, Queue } from '../../src/queue/api.ts';
import { all, procs } from '../queue/all.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';

let redis: TestRedis;
let queue: Queue;
beforeAll(async () => {
  redis = await startRedis();
  queue = await redis.open();
});
afterAll(() => redis.stop());

const MANY = 12_000;

/** A cluster of many jobs in several states. */
async function submitted(owner: string, ad: Readonly<Record<string, string>> = {}): Promise<number> {
  const { cluster } = await queue.submit({
    clusterAd: { Owner: `"${owner}"`, JobUniverse: '5', ...ad },
    procs: procs(MANY),
    manager: owner,
    site: 'hpc',
  });
  const changes: Change[] = [];
  for (let proc = 0; proc < MANY; proc++) {
    const id = { cluster, proc };
    if (proc % 5 === 1) changes.push({ id, event: 'hold', set: { HoldReason: '"x"' } });
    if (proc % 5 === 2) changes.push({ id, event: 'take' });
    if (proc % 5 === 3) changes.push({ id, event: 'take' }, { id, event: 'remove' });
    if (proc % 5 === 4) changes.push({ id, event: 'remove' });
  }
  const answers = await queue.transitionMany(changes);
  expect(answers.filter(({ ok }) => !ok)).toEqual([]);
  return cluster;
}

async function jobsOf(cluster: number) {
  const jobs = (await all(queue.queryChunks({ clusters: [cluster] }))).flat();
  return jobs.map(({ id, state, attrs }) => [id.proc, state, attrs.get('RemoveReason'), attrs.get('LeaveJobInQueue')]);
}

describe('the removal of a cluster with many jobs', () => {
  it('does to each what it does by its id', async () => {
    const [whole, byId, other] = [await submitted('frida'), await submitted('frida'), await submitted('emil')];
    const ids = Array.from({ length: MANY }, (_, proc) => ({ cluster: byId, proc }));
    let looked = 0;
    const together = await act(
      queue,
      'remove',
      { owner: 'frida', clusters: [whole, other], looked: (n) => (looked += n) },
      'f',
    );
    const each = await act(queue, 'remove', { ids }, 'f');
    expect(together.map(({ id }) => id)).toEqual(ids.map(({ proc }) => ({ cluster: whole, proc })));
    const said = (results: typeof together) => results.map(({ id, result, message }) => [id.proc, result, message]);
    expect(said(together)).toEqual(said(each));
    expect(new Set(together.map(({ message }) => message)).size).toBe(2);
    expect(await jobsOf(whole)).toEqual(await jobsOf(byId));
    expect(looked).toBe(MANY);
    expect((await queue.summaries([other]))[0]?.counts.idle).toBe(MANY / 5);
  });

  it.each([MANY, 3])(
    'says nothing of jobs that left before they were reached, unless they were named (%i)',
    async (count) => {
      const clusterAd = { Owner: '"ida"', JobUniverse: '5' };
      const { cluster } = await queue.submit({ clusterAd, procs: procs(count), manager: 'ida', site: 'hpc' });
      const ids = [1, 2].map((proc) => ({ cluster, proc }));
      const leaving: Queue = {
        ...queue,
        transitionMany: async (changes) => {
          await queue.transitionMany(ids.map((id): Change => ({ id, event: 'remove' })));
          await queue.retire(ids);
          return queue.transitionMany(changes);
        },
      };
      const results = await act(leaving, 'remove', { clusters: [cluster] }, 'ida');
      expect(results.length).toBe(count - 2);
      expect(new Set(results.map(({ result }) => result))).toEqual(new Set(['done']));
      const named = await act(queue, 'remove', { ids }, 'ida');
      expect(named.map(({ result }) => result)).toEqual(['not-found', 'not-found']);
    },
  );

  it('answers in the order of ids, beside clusters of few jobs', async () => {
    const few = async () =>
      (
        await queue.submit({
          clusterAd: { Owner: '"jens"', JobUniverse: '5' },
          procs: procs(2),
          manager: 'jens',
          site: 'hpc',
        })
      ).cluster;
    const clusters = [await few(), await submitted('jens'), await few()];
    const results = await act(queue, 'remove', { owner: 'jens' }, 'jens');
    expect([...new Set(results.map(({ id }) => id.cluster))]).toEqual(clusters);
    expect(results.length).toBe(MANY + 4);
  });

  it('lets go of all of them by force', async () => {
    const cluster = await submitted('gerda');
    const results = await act(queue, 'remove', { owner: 'gerda', force: true }, 'gerda');
    expect(results.length).toBe(MANY);
    expect(new Set((await jobsOf(cluster)).map(([, state]) => state))).toEqual(new Set(['removed']));
  });

  it('takes along the other nodes of a parallel job', async () => {
    const cluster = await submitted('hugo', { JobUniverse: '11', TotalSubmitProcs: String(MANY) });
    const results = await act(queue, 'remove', { clusters: [cluster] }, 'hugo');
    expect(results.length).toBe(MANY);
  });
});
