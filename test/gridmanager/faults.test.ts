import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { isFault, narrowing } from '../../src/job/faults.ts';
import { type AttemptKey, formatAttemptKey, type JobId } from '../../src/job/ids.ts';
import type { JobRecord, Queue } from '../../src/queue/api.ts';
import { seeded } from '../seeded.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { World } from './protocol-world.ts';
import { CLEAR } from './simulated-site.ts';

describe('a fault that comes from one job, or one site', () => {
  let redis: TestRedis;
  let queue: Queue;
  let world: World;

  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(() => redis.stop());
  beforeEach(() => {
    world = new World(queue, seeded(3), CLEAR, ['other']);
    world.faulty = true;
  });
  afterEach(() => world.end());

  function keyOf(id: JobId | undefined, attempt = 1): AttemptKey {
    if (!id) throw new Error('no job');
    return formatAttemptKey({ agent: queue.agent, ...id, attempt });
  }
  const ended = (jobs: readonly JobRecord[], but: JobId | undefined) =>
    jobs.filter(({ id }) => id.proc !== but?.proc).every(({ state }) => state === 'completed');
  const stateOf = (jobs: readonly JobRecord[], id: JobId | undefined) => jobs.find((job) => job.id.proc === id?.proc);

  it.each(['prepare', 'fetch'] as const)(
    'in %s keeps up no other job of the batch, and the job is held at last',
    async (call) => {
      const ids = await world.submit(9);
      const bad = ids[5];
      world.site.met = (now, keys) => {
        if (now === call && keys.includes(keyOf(bad))) throw new TypeError('what nobody foresaw');
      };
      await world.until((jobs) => ended(jobs, bad));
      expect(stateOf(await world.records(), bad)?.state).toBe(call === 'prepare' ? 'preparing' : 'finished');
      expect(world.faults[0]).toMatch(
        /of job \d+\.5, because of an internal error; it retries in 1 s: what nobody foresaw/,
      );
      // It is retried a few times; then the job is held for a person to decide.
      await world.until((jobs) => {
        world.ahead += 5000;
        return ['held', 'kept'].includes(stateOf(jobs, bad)?.state ?? '');
      });
      expect(stateOf(await world.records(), bad)?.attrs.get('HoldReason')).toContain('TypeError: what nobody foresaw');
      expect(world.faults).toHaveLength(4);
      expect(world.managers).toBe(1);
      world.site.met = undefined;
      await world.finish();
      expect(await world.broken()).toEqual([]);
    },
  );

  it('that says what is wrong holds the job at once', async () => {
    const ids = await world.submit(5);
    world.site.met = (call, keys) => {
      if (call === 'fetch' && keys.includes(keyOf(ids[2]))) throw new GryphusError('bad-input', 'That name leads out.');
    };
    await world.until((jobs) => ended(jobs, ids[2]) && stateOf(jobs, ids[2])?.state === 'kept');
    expect(stateOf(await world.records(), ids[2])?.attrs.get('HoldReason')).toBe('"That name leads out."');
    expect(world.faults).toEqual([]);
    expect(world.managers).toBe(1);
  });

  it.each(['prepare', 'commit', 'poll', 'fetch', 'forget'] as const)(
    'at one site in every %s leaves the other site alone, is said with its name, and ends when it is over',
    async (call) => {
      await world.submit(4);
      const mine = world.jobs.length;
      world.site.met = (now) => {
        if (now === call) throw new TypeError('an answer like no other');
      };
      await world.until(() => world.faults.length >= 2);
      const other = await queue.submit({
        clusterAd: { Owner: '"u"', Cmd: '"/bin/true"', Iwd: '"/tmp"', JobUniverse: '5' },
        procs: [{ attrs: {} }],
        manager: world.identity,
        site: 'other',
      });
      await world.until(async () => {
        const [job] = await queue.get([{ cluster: other.cluster, proc: 0 }]);
        return job?.state === 'completed';
      });
      expect(world.faults.join('\n')).toContain('an answer like no other');
      const view = await queue.kv.get('site-status', `${world.identity}/there`);
      if (call !== 'prepare' && call !== 'fetch') expect(view?.value).toContain('an answer like no other');
      world.site.met = undefined;
      world.ahead += 120_000;
      await world.until((jobs) => jobs.slice(0, mine).every(({ state }) => state === 'completed'));
      expect(world.managers).toBe(1);
      expect(await world.broken()).toEqual([]);
    },
  );

  it('narrowing calls for each at most twice as often as there are jobs, and names those at fault', async () => {
    const all = Array.from({ length: 100 }, (_, i) => i);
    let calls = 0;
    const { done, failed } = await narrowing(all, async (some) => {
      calls += 1;
      if (some.includes(17) || some.includes(91)) throw new RangeError('no');
      return some;
    });
    expect([...failed.keys()]).toEqual([17, 91]);
    expect(done.flat()).toEqual(all.filter((i) => i !== 17 && i !== 91));
    expect(calls).toBeLessThan(30);
    const away = new GryphusError('site-unreachable', 'away');
    await expect(narrowing(all, () => Promise.reject(away))).rejects.toBe(away);
  });

  it('is distinguished from an absent site, an absent queue, and an old epoch', () => {
    for (const code of ['site-unreachable', 'queue-unavailable', 'stale-epoch', 'protocol-error'] as const)
      expect([code, isFault(new GryphusError(code, ''))]).toEqual([code, false]);
    for (const thrown of [new TypeError('x'), 'x', new GryphusError('bad-input', ''), new GryphusError('internal', '')])
      expect(isFault(thrown)).toBe(true);
  });
});
