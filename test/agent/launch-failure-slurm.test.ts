import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

describe.skipIf(!SLOW || skipWithoutSlurm())('a job whose node fails in its prolog', { timeout: 180_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  // Another try begins anew: the first one mends the prolog.
  beforeEach(async () => {
    agent = new TestAgent();
    const bad = agent.file('../bad', '');
    const prolog = agent.file('../prolog', `#!/bin/sh\n[ ! -e ${bad} ]\n`);
    chmodSync(prolog, 0o755);
    slurm = await startSlurm({ nodes: 1, cpus: 4, config: [`Prolog=${prolog}`] });
    agent.slurmSite('slurm', slurm);
  }, 120_000);
  afterEach(async () => {
    await agent?.end();
    await slurm?.stop();
  });

  it('is held by Slurm and released by us, and runs once when a node is in order', async () => {
    const cluster = await agent.submit(
      `universe = grid\ngrid_resource = batch slurm slurm\nexecutable = /bin/sh\narguments = "-c 'echo ran >> ${agent.dir}/ledger'"\ntransfer_executable = false\nqueue 3\n`,
    );
    await until(
      'Slurm to hold them',
      async () => /launch.failed.requeued.held/.test(slurm.run('squeue', '-h', '-o', '%r')) || undefined,
    );
    rmSync(join(agent.dir, 'bad'));
    await until('the node', async () => {
      try {
        slurm.scontrol('update', 'NodeName=n1', 'State=RESUME');
      } catch {
        // It is not drained yet, or no longer.
      }
      return /^idle|^mix/.test(slurm.run('sinfo', '-h', '-o', '%t')) || undefined;
    });
    await until(
      'their release',
      async () => !/launch.failed/.test(slurm.run('squeue', '-h', '-o', '%r')) || undefined,
      90_000,
    );
    // Slurm starts what it queued again only two minutes later.
    await agent.ok('wait', '--no-outcome', '--timeout', '150', String(cluster));
    expect(agent.read('../ledger')).toBe('ran\n'.repeat(3));
  });
});
