import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';

/** A change of the file takes effect within one second; commands take longer here. Milliseconds. */
const SOON = 10_000;

describe('the settings of the worker of this machine', () => {
  const agent = new TestAgent();
  const pool = (text: string) => agent.config(`[pool]\n${text}\n`);

  beforeAll(async () => {
    pool('cpus = 2\nmemory = "4G"');
    await agent.ok('up');
    await slot((ad) => ad['Cpus'] === 2);
  }, 120_000);
  // Whatever a test that failed leaves would hold the one processor of the next.
  afterEach(() => agent.run(['rm', '--all']));
  afterAll(() => agent.end());

  async function slots(): Promise<Record<string, unknown>[]> {
    const { stdout } = await agent.run(['status', '--pool', '--json']);
    return stdout.trim() === '' ? [] : (JSON.parse(stdout) as Record<string, unknown>[]);
  }
  /** The machine's own slot, as soon as it has this state. */
  const slot = (look: (ad: Record<string, unknown>) => boolean) =>
    until(
      'the machine to say so',
      async () => (await slots()).find((ad) => ad['PartitionableSlot'] === true && look(ad)),
      SOON,
    );
  const status = async (cluster: number) => (await agent.ads(cluster))[0]?.['JobStatus'];
  const runs = (cluster: number) =>
    until('it to run', async () => (await status(cluster)) === 2 || undefined, SOON).catch(async (thrown: unknown) => {
      throw new Error(await agent.ok('why', String(cluster)), { cause: thrown });
    });
  const job = (more = '', text = 'sleep 1000') =>
    `executable = /bin/sh\narguments = "-c '${text}'"\ntransfer_executable = false\n${more}queue\n`;

  it('say how much of it there is, and running jobs continue if it is reduced', async () => {
    const cluster = await agent.submit(job('request_cpus = 3\n'));
    pool('cpus = 3\nmemory = "5G"');
    await runs(cluster);
    expect(await slot((ad) => ad['TotalCpus'] === 3)).toMatchObject({ Cpus: 0, TotalMemory: 5120 });
    pool('cpus = 1\nmemory = "1G"');
    expect(await slot((ad) => ad['TotalCpus'] === 1)).toMatchObject({ Cpus: 0, TotalMemory: 1024 });
    const next = await agent.submit(job());
    expect(await status(cluster)).toBe(2);
    await until(
      'it to wait',
      async () => (await agent.ok('why', String(next))).includes('busy with other jobs') || undefined,
      SOON,
    );
    await agent.ok('rm', String(cluster));
    await runs(next);
  }, 120_000);

  it('say which jobs it takes', async () => {
    pool('cpus = 2\nstart = "TARGET.JobPrio > 4"');
    await slot((ad) => ad['START'] !== true);
    const [low, high] = [await agent.submit(job()), await agent.submit(job('priority = 5\n'))];
    await runs(high);
    expect(await agent.ok('why', String(low))).toMatch(/START/);
    pool('cpus = 2');
    await runs(low);
  }, 120_000);

  it('say which jobs it prefers, and for how long it leaves others in peace', async () => {
    pool('cpus = 1');
    await slot((ad) => ad['TotalCpus'] === 1);
    const plain = await agent.submit(job());
    await runs(plain);
    const liked = await agent.submit(job('+Liked = true\n'));
    pool('cpus = 1\nrank = "TARGET.Liked =?= true"\nretirement = "100000"');
    await slot((ad) => ad['MaxJobRetirementTime'] === 100_000);
    expect(await status(plain)).toBe(2);
    pool('cpus = 1\nrank = "TARGET.Liked =?= true"');
    await runs(liked);
    // Each of the two is told of on its own.
    await until('the other to be evicted', async () => (await status(plain)) === 1 || undefined, SOON);
  }, 120_000);

  it('say whether it looks at the memory of jobs, also of one that runs already', async () => {
    pool('cpus = 2\nlimit_memory = false');
    const greedy = `const all = Buffer.alloc(150e6, 1);
require('fs').writeFileSync('greedy', '');
setTimeout(() => all, 1e6);`;
    agent.file('greedy.cjs', greedy);
    const cluster = await agent.submit(
      `executable = ${process.execPath}\narguments = greedy.cjs\ntransfer_executable = false\nrequest_memory = 16\nqueue\n`,
    );
    await until('it to hold its memory', () => existsSync(join(agent.work, 'greedy')) || undefined);
    pool('cpus = 2\nlimit_memory = true');
    await until('it to be held', async () => (await status(cluster)) === 5 || undefined, SOON);
    expect((await agent.ads(cluster))[0]).toMatchObject({ HoldReasonCode: 34 });
  }, 120_000);

  it('that are wrong are said, and leave in force what was set', async () => {
    pool('cpus = 2\nstart = "TARGET.JobPrio >"');
    await until('it to be said', () => /start.*must be a ClassAd expression/.test(agent.log('pool.log')) || undefined);
    pool('cpus = 2\nmemory = "2G"\nstart = "true"');
    await slot((ad) => ad['TotalMemory'] === 2048);
    expect(await agent.run(['config', 'pool.start', 'a +'])).toMatchObject({ code: 78 });
  }, 60_000);

  it('take it out of the pool when what it runs is over, and into it again', async () => {
    const cluster = await agent.submit(job('', 'until [ -e over ]; do sleep 0.1; done'));
    await runs(cluster);
    pool('local_worker = false');
    await until(
      'it to take no more',
      async () => (await slots()).some((ad) => ad['State'] === 'Drained') || undefined,
      SOON,
    );
    agent.file('over', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '30', String(cluster));
    await until('it to be gone', async () => (await slots()).length === 0 || undefined, SOON);
    pool('local_worker = true\ncpus = 2');
    await slot((ad) => ad['Cpus'] === 2);
  }, 120_000);
});
