import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';

/** The files of docs/parallel.md, by name. */
const page = readFileSync(join(import.meta.dirname, '../../docs/parallel.md'), 'utf8');
const example = new Map(
  [...page.matchAll(/^\*\*(ring\.\w+)\*\*[^\n]*:\n\n```\w*\n([\s\S]*?)^```$/gm)].map(([, name = '', text = '']) => [
    name,
    text,
  ]),
);
/** Tells each rank's node before it becomes the program. Both launchers and four nodes are on one host. */
const ON_ITS_NODE = `sh -c 'echo "on $SLURMD_NODENAME"; exec ./ring'`;
/** Ranks of two nodes must not think that they share memory, although they do. */
const OPEN_MPI = 'OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=tcp,self';

describe.skipIf(skipWithoutSlurm())('MPI over a real Slurm with four nodes', { timeout: 120_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  let sshd: Sshd;
  beforeAll(async () => {
    slurm = await startSlurm({ nodes: 4, cpus: 2 });
    sshd = await startSshd();
    agent = new TestAgent({ HOME: sshd.clientHome });
    agent.site('cluster1', {
      url: sshd.url,
      batch: 'slurm',
      prelude: `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`,
      more: `scratch = "${agent.dir}/there"\n[limits]\npoll_min = "1s"\n`,
    });
    agent.file('ring.c', example.get('ring.c') ?? '');
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
    await sshd?.stop();
  });

  /** Runs the example, with another script or further lines if given; its ad when it has ended. */
  async function ring(mpi: 'mpich' | 'openmpi', script = example.get('ring.sh') ?? '', lines = '') {
    execFileSync(`mpicc.${mpi}`, ['-o', agent.file('ring', ''), agent.file('ring.c', example.get('ring.c') ?? '')]);
    agent.file('ring.sh', script, 0o755);
    const cluster = await agent.submit(`${lines}\n${example.get('ring.sub') ?? ''}`);
    await agent.run(['wait', String(cluster), '--timeout', '90']);
    const [ad = {}] = await agent.ads(cluster);
    return { ad, said: existsSync(join(agent.work, 'ring.out')) ? agent.read('ring.out') : '' };
  }

  it("runs the page's example, with MPICH and srun", async () => {
    const { ad, said } = await ring('mpich');
    expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
    expect(said).toBe('8 ranks, sum 28\n');
    const jobs = slurm.scontrol('show', 'jobs', '-o');
    expect(jobs).toContain(' NodeList=n[1-4] ');
    expect(jobs).toContain(' NumTasks=8 CPUs/Task=1 ');
  });

  it('says which launchers the site has', async () => {
    const { stdout } = await agent.run(['site', 'test', 'cluster1']);
    expect(stdout).toMatch(/launchers: srun \(.*pmi2.*\); mpiexec \((MPICH|Open MPI) [\d.]+\); mpirun \(.+\)/);
  });

  it.skipIf(!SLOW)("takes the launcher's status for the job's, and the parallel universe for the same", async () => {
    const script = `#!/bin/sh\nsrun --mpi=pmi2 ${ON_ITS_NODE}\nsrun sh -c 'exit $((3 + SLURM_PROCID % 2))'\n`;
    const { ad, said } = await ring('mpich', script, 'universe = parallel\nranks_per_node = 1');
    expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 4 });
    expect(said.split('\n').sort()).toEqual(['', '4 ranks, sum 6', 'on n1', 'on n2', 'on n3', 'on n4']);
  });

  it.skipIf(!SLOW)('runs the example with Open MPI and srun, by PMIx', async () => {
    const { ad, said } = await ring('openmpi', `#!/bin/sh\nexport ${OPEN_MPI}\nexec srun --mpi=pmix ${ON_ITS_NODE}\n`);
    expect(ad, agent.read('ring.err')).toMatchObject({ JobStatus: 4, ExitCode: 0 });
    const nodes = ['n1', 'n2', 'n3', 'n4'].flatMap((node) => [`on ${node}`, `on ${node}`]);
    expect(said.trim().split('\n').sort()).toEqual(['8 ranks, sum 28', ...nodes]);
  });

  it('ends all ranks when the job is removed', async () => {
    const pids = join(agent.dir, 'pids');
    agent.file('ring.sh', `#!/bin/sh\nsrun sh -c 'echo $$ >>${pids}; exec sleep 600'\n`, 0o755);
    const cluster = await agent.submit(example.get('ring.sub') ?? '');
    const all = await until('eight ranks', () => {
      const found = existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n') : [];
      return found.length === 8 ? found : undefined;
    });
    await agent.ok('rm', String(cluster));
    await until('all of them gone', () => all.every((pid) => !existsSync(`/proc/${pid}`)) || undefined);
    await until('an empty queue', () => slurm.run('squeue', '-h').trim() === '' || undefined);
  });

  it('holds what the site can never give, in its own words', async () => {
    const cluster = await agent.submit((example.get('ring.sub') ?? '').replace('= 4', '= 5'));
    const held = await until('a hold', async () => {
      const [ad = {}] = await agent.ads(cluster);
      return ad['JobStatus'] === 5 ? ad : undefined;
    });
    expect(held['HoldReason']).toMatch(
      /Site cluster1: Batch job submission failed: .+\. Request no more .* machine_count in the submit file/,
    );
    await agent.ok('rm', String(cluster));
  });

  describe.skipIf(!SLOW)('by launchers that start processes of their own on each node', () => {
    it.each([
      ['mpich', `mpiexec.mpich -genvnone ${ON_ITS_NODE}`],
      ['openmpi', `${OPEN_MPI} mpirun.openmpi ${ON_ITS_NODE}`],
    ] as const)('%s: %s', async (mpi, command) => {
      const { ad, said } = await ring(mpi, `#!/bin/sh\n${command}\n`);
      expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
      const nodes = ['n1', 'n2', 'n3', 'n4'].flatMap((node) => [`on ${node}`, `on ${node}`]);
      expect(said.trim().split('\n').sort()).toEqual(['8 ranks, sum 28', ...nodes]);
    });
  });
});
