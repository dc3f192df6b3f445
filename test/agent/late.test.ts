import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { killMatching } from './kill.ts';

describe('a million jobs of which a thousand are made', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());

  it('cost the memory of a thousand, and others are made as some leave', async () => {
    // Nothing answers there, so the jobs wait.
    agent.site('away', { url: 'ssh://127.0.0.1:1', batch: 'fork' });
    await agent.ok('up');
    const redis = new Redis(join(agent.home, 'state/run/redis.sock'));
    const memory = async () => Number(/^used_memory_dataset:(\d+)/m.exec(await redis.info('memory'))?.[1]);
    const job = (queue: string) =>
      `universe = grid\ngrid_resource = batch fork away\nexecutable = /bin/true\ntransfer_executable = false\narguments = $(Process)\n${queue}\n`;
    const empty = await memory();
    await agent.submit(job('queue 1000'));
    const thousand = (await memory()) - empty;

    const before = await memory();
    const cluster = await agent.submit(job('max_materialize = 1000\nqueue 1000000'));
    await agent.ok('rm', `${cluster}.7`, `${cluster}.9`);
    const last = async () => (await agent.run(['q', '-af', 'ProcId', '--constraint', 'ProcId >= 1000'])).stdout;
    // By then the Scheduler has checked more than once: it materializes these two and no more.
    await until('two more to be made', async () => (await last()) === '1000\n1001\n' || undefined);
    await agent.ok('rm', `${cluster}.11`);
    await until('another', async () => (await last()) === '1000\n1001\n1002\n' || undefined);
    expect(await agent.ok('q', '--totals')).toMatch(/^Total for query: 2000 jobs; .* 2000 idle/m);
    expect((await memory()) - before).toBeLessThan(3 * thousand + 2 ** 20);
    redis.disconnect();
    await agent.ok('rm', String(cluster));
    await until(
      'all to be gone',
      async () => /^Total for query: 1000 jobs/m.test(await agent.ok('q', '--totals')) || undefined,
    );
  }, 120_000);
});

describe('a job that cannot be made', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());

  it('pauses its cluster with the reason, and no other', async () => {
    agent.site('away', { url: 'ssh://127.0.0.1:1', batch: 'fork' });
    const job = (lines: string) =>
      `universe = grid\ngrid_resource = batch fork away\nexecutable = /bin/true\ntransfer_executable = false\nmax_materialize = 1\n${lines}\n`;
    const bad = await agent.submit(
      job('arguments = $INT(x)\npriority = $(y)\nqueue x,y from (\n1 1\n2 2\nthree 3\n4 4\n)'),
    );
    const good = await agent.submit(job('queue 4'));
    await agent.ok('rm', `${bad}.0`);
    await agent.ok('rm', `${good}.0`);
    const ids = async () => (await agent.ok('q', '-af:j', 'JobPrio')).trim().split('\n');
    await until('the next of each', async () => (await ids()).join() === `${bad}.1 2,${good}.1 0` || undefined);
    await agent.ok('rm', `${bad}.1`);
    const why = await until('the pause', async () => {
      const { stdout } = await agent.run(['why', String(bad)]);
      return stdout.includes('paused') ? stdout : undefined;
    });
    expect(why).toContain(`${bad}.2 (held): The jobs from here to ${bad}.3 are not materialized`);
    expect(why).toContain(
      'Job 2 cannot be materialized: on Line 6 of job.sub: $INT() macro: three does not evaluate to an integer!',
    );
    // Nothing waits for jobs that are not materialized.
    await agent.ok('wait', '--no-outcome', String(bad), '--until', 'settled');
    await agent.ok('rm', `${good}.1`);
    await until('the other cluster to go on', async () => (await ids()).join() === `${good}.2 0` || undefined);
  }, 60_000);
});

describe('a job that is removed before it is made', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());

  it('never runs, whatever is killed meanwhile, and leaves the queue in its turn', async () => {
    agent.config('[pool]\ncpus = 1\n');
    const wait = `until [ -e ${agent.work}/go ]; do sleep 0.05; done; echo $1 >> ${agent.work}/ran`;
    agent.file('job.sh', `#!/bin/sh\n${wait}\n`, 0o755);
    const cluster = await agent.submit(
      'executable = job.sh\narguments = $(Process)\nlog = job.log\nmax_materialize = 1\nqueue 7\n',
    );
    const said = await agent.ok('rm', `${cluster}.2`, `${cluster}.3`, `${cluster}.6`);
    expect(said.match(/marked for removal/g)).toHaveLength(3);
    for (const daemon of ['scheduler', 'redis-server']) killMatching(daemon, agent);
    await agent.ok('up');
    const none = await agent.run(['rm', `${cluster}.7`]);
    expect([none.code, none.stderr + none.stdout]).toEqual([1, expect.stringContaining('not found')]);
    agent.file('go', '');
    await agent.run(['wait', String(cluster)]);
    await until('the history', async () => (await agent.ok('q', '-af', 'ProcId')) === '' || undefined);
    expect(agent.read('ran')).toBe('0\n1\n4\n5\n');
    const ads = await agent.ads(cluster);
    expect(ads.map((ad) => ad['JobStatus'])).toEqual([4, 4, 3, 3, 4, 4, 3]);
    expect(ads[2]?.['RemoveReason']).toMatch(/^via gryphus rm/);
    const log = agent.read('job.log');
    expect(log.match(/^000 /gm)).toHaveLength(7);
    expect(log.match(/^009 .*\.00[236]\./gm)).toHaveLength(3);
  }, 120_000);
});
