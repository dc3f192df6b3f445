import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { TestAgent, until } from './agent.ts';

describe.skipIf(skipWithoutSlurm())('move, with a real Slurm', { timeout: 180_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.site('two', { url: 'local', batch: 'fork', more: `scratch = "${agent.dir}/two"\n[limits]\nrunning = 2\n` });
    slurm = await startSlurm({ nodes: 1, cpus: 1 });
    agent.slurmSite('slurm', slurm);
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
  });

  it('takes pending jobs out of its queue, and they run at the other site alone', async () => {
    const go = join(agent.dir, 'go-3');
    const cluster = await agent.submit(
      [
        'universe = grid',
        'grid_resource = batch slurm slurm',
        'executable = /bin/sh',
        `arguments = "-c 'echo $(Process) $PWD >> ${agent.dir}/ledger; while [ ! -e ${go} ]; do sleep 0.1; done'"`,
        'transfer_executable = false',
        'queue 4',
      ].join('\n'),
    );
    await until('one to run and three to wait there', async () => {
      const seen = await agent.ok('q', `${cluster}`, '-af', 'GryphusState', 'GridJobStatus');
      return /running/.test(seen) && seen.match(/committed PENDING/g)?.length === 3 ? seen : undefined;
    });
    await agent.ok('move', `${cluster}`, 'two');
    agent.file('../go-3', '');
    await agent.ok('wait', '--no-outcome', `${cluster}`, '--timeout', '90');
    const seen = readFileSync(join(agent.dir, 'ledger'), 'utf8').trim().split('\n').sort();
    expect(seen.map((line) => line.slice(0, 1))).toEqual(['0', '1', '2', '3']);
    expect(seen.filter((line) => line.includes('/two/'))).toHaveLength(3);
    expect(await agent.ok('site', 'audit', 'slurm')).toContain('agree');
  });
});
