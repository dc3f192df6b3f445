import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { TestAgent, until } from './agent.ts';

describe.skipIf(skipWithoutSlurm())('a batch script, with a real Slurm', { timeout: 180_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  beforeAll(async () => {
    slurm = await startSlurm({ nodes: 2, cpus: 4 });
    agent = new TestAgent();
    agent.slurmSite('c1', slurm);
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
  });

  /** What sbatch makes of the script: its environment, by the file that the script writes. */
  const SCRIPT = `#!/bin/bash
#SBATCH --job-name=compare
#SBATCH --array=3-5:2
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --cpus-per-task=2 --time=5
#SBATCH -o WHERE_%A_%a.log
env | grep -E '^SLURM_(ARRAY|NTASKS|NNODES|JOB_NUM|CPUS_PER|TASKS_PER|NPROCS|JOB_CPUS|SUBMIT_DIR|JOB_NAME)' | sort
echo "in $PWD"
srun --mpi=none sh -c 'echo rank $SLURM_PROCID' | sort
`;

  it('has a shell beside each of its running jobs, by srun', async () => {
    agent.file('gate.sh', '#!/bin/sh\n#SBATCH -a 0-1\n#SBATCH -t 5\nuntil [ -e gate ]; do sleep 0.2; done\n');
    const cluster = Number.parseInt((await agent.run(['submit', '--terse', '--site', 'c1', 'gate.sh'])).stdout, 10);
    await agent.ok('wait', `${cluster}`, '--until', 'start', '--timeout', '90');
    for (const proc of [0, 1]) {
      const seen = await until('the shell', async () => {
        const said = await agent.run(
          ['ssh', `${cluster}.${proc}`, '--', 'cat; echo "${SLURM_JOB_ID:+in it}"; exit 7'],
          {
            input: 'typed\n',
          },
        );
        return said.stderr.includes('is not known yet') ? undefined : said;
      });
      expect(seen).toMatchObject({ code: 7, stdout: 'typed\nin it\n' });
    }
    await agent.ok('rm', `${cluster}`);
  });

  it('that names no partition of the site is told its partitions', async () => {
    agent.file('wrong.sh', '#!/bin/sh\n#SBATCH -p nosuch\ntrue\n');
    const cluster = Number.parseInt((await agent.run(['submit', '--terse', '--site', 'c1', 'wrong.sh'])).stdout, 10);
    const { code, stderr } = await agent.run(['wait', `${cluster}`, '--until', 'settled', '--timeout', '90']);
    expect([code, stderr]).toEqual([4, expect.stringMatching(/1 job: held: .*nosuch.*\bmain\b/)]);
    await agent.ok('rm', `${cluster}`);
  });

  it('of PBS gets its nodes there too', async () => {
    agent.file(
      'nodes.sh',
      "#!/bin/sh\n#PBS -l nodes=2:ppn=2,walltime=5:00 -j oe -o nodes.log\necho $PBS_NUM_NODES $PBS_NP $SLURM_NNODES\nsrun --mpi=none sh -c 'echo $SLURM_NODEID' | sort\n",
    );
    const said = await agent.run(['submit', '--terse', '--site', 'c1', 'nodes.sh']);
    expect(said.stderr).toBe('');
    await agent.ok('wait', `${Number.parseInt(said.stdout, 10)}`, '--timeout', '90');
    expect(agent.read('nodes.log')).toBe('2 4 2\n0\n0\n1\n1\n');
  });

  it('means there what sbatch makes of it', async () => {
    agent.file('real.sh', SCRIPT.replace('WHERE', 'real'));
    agent.file('ours.sh', SCRIPT.replace('WHERE', 'ours'));
    const real = Number(slurm.run('sbatch', '--parsable', `--chdir=${agent.work}`, join(agent.work, 'real.sh')).trim());
    await until('sbatch', () => (slurm.run('squeue', '-h').trim() === '' ? true : undefined));
    const said = await agent.run(['submit', '--terse', '--site', 'c1', 'ours.sh']);
    expect(said.stderr).toBe('');
    const cluster = Number.parseInt(said.stdout, 10);
    await agent.ok('wait', `${cluster}`, '--timeout', '90');
    for (const task of [3, 5]) {
      const theirs = readFileSync(join(agent.work, `real_${real}_${task}.log`), 'utf8');
      // sbatch was run elsewhere, and ids are our own.
      const expected = theirs
        .replace(/^SLURM_ARRAY_JOB_ID=.*$/m, `SLURM_ARRAY_JOB_ID=${cluster}`)
        .replace(/^SLURM_SUBMIT_DIR=.*$/m, `SLURM_SUBMIT_DIR=${agent.work}`);
      expect(agent.read(`ours_${cluster}_${task}.log`)).toBe(expected);
    }
  });

  it('for PBS runs there too', async () => {
    agent.file(
      'p.sh',
      '#!/bin/sh\n#PBS -N p -l ncpus=3,walltime=5:00\n#PBS -q nosuch\necho $NCPUS $SLURM_CPUS_ON_NODE $PBS_O_WORKDIR\n',
    );
    const said = await agent.run(['submit', '--terse', '--site', 'c1', 'p.sh']);
    expect(said.code).toBe(0);
    const cluster = Number.parseInt(said.stdout, 10);
    await agent.ok('wait', `${cluster}`, '--timeout', '60');
    expect(agent.read(`p.o${cluster}`)).toBe(`3 3 ${agent.work}\n`);
  });
});
