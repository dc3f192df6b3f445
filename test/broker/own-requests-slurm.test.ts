import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';

describe.skipIf(skipWithoutSlurm())("a user's own wrong requests, at a real Slurm", { timeout: 120_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  beforeAll(async () => {
    agent = new TestAgent();
    slurm = await startSlurm({ nodes: 1, cpus: 2 });
    agent.slurmSite('slurm', slurm);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
  });

  it('do not count against it', async () => {
    const wrong = ['batch_queue = nosuch', 'request_memory = 900G', 'batch_runtime = 99999999', 'request_cpus = 999'];
    const text = `universe = grid\ngrid_resource = batch slurm slurm\nexecutable = /bin/true\n`;
    const one = `universe = grid\nrequirements = TARGET.Name == "slurm"\nexecutable = /bin/true\nbatch_queue = nosuch\nqueue 4\n`;
    const clusters = [];
    for (const line of wrong) clusters.push(await agent.submit(`${text}${line}\nqueue\n`));
    clusters.push(await agent.submit(one));
    for (const cluster of clusters) {
      await until(`cluster ${cluster} to be held`, async () =>
        /^(5\n)+$/.test(await agent.ok('q', `${cluster}`, '-af', 'JobStatus')) ? true : undefined,
      );
    }
    expect(await agent.ok('status', '--sites', '-af', 'Name', 'RecentFailures')).toContain('slurm 0\n');
    // A site that refuses something nobody requested is at fault.
    agent.slurmSite('slurm', slurm, 'queue = "gone"\n');
    await until('a refusal that counts', async () => {
      await agent.submit(`${text}queue\n`);
      return / [1-9]/.test(await agent.ok('status', '--sites', '-af', 'Name', 'RecentFailures')) ? true : undefined;
    });
  });
});
