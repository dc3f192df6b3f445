import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';

describe('batch scripts in the pool', { timeout: 180_000 }, () => {
  let agent: TestAgent;
  beforeAll(() => {
    agent = new TestAgent();
    agent.config('[scheduler]\nperiodic_interval = "1s"\n[pool]\ncpus = 8\nmemory = "4G"\n');
  });
  afterAll(() => agent?.end());

  async function script(name: string, text: string, ...args: string[]): Promise<number> {
    agent.file(name, text);
    return Number(/^(\d+)\./.exec(await agent.ok('submit', '--terse', name, ...args))?.[1]);
  }

  it('run as an array where they were submitted, with the variables of their system', async () => {
    const cluster = await script(
      'array.sh',
      '#!/bin/bash\n#SBATCH -J arr --array=2-6:2%2 -o out.%a\n#SBATCH --export=ALL,MINE="two words $$ $(x)"\n' +
        'echo "$SLURM_ARRAY_TASK_ID|$SLURM_JOB_ID|$SLURM_SUBMIT_DIR|$PWD|$MINE|$1"\n',
      'an argument',
    );
    // The copy is what runs.
    agent.file('array.sh', '#!/bin/sh\nexit 1\n');
    await agent.ok('wait', `${cluster}`);
    for (const task of [2, 4, 6]) {
      const job = cluster * 10_000_000 + task;
      expect(agent.read(`out.${task}`)).toBe(
        `${task}|${job}|${agent.work}|${agent.work}|two words $$ $(x)|an argument\n`,
      );
    }
  });

  it('may have any name and any arguments; what a description cannot hold is refused', async () => {
    const cluster = await script(
      'a\nb $(x) é".sh',
      '#!/bin/sh\n#SBATCH -o odd\nprintf "%s|" "$@"\n',
      'two\nlines',
      '$(x)"\'',
    );
    await agent.ok('wait', `${cluster}`);
    expect(agent.read('odd')).toBe('two\nlines|$(x)"\'|');
    const dir = mkdtempSync(join(agent.work, 'a\nb'));
    const { code, stderr } = await agent.run(['submit', join(agent.work, 'a\nb $(x) é".sh')], { cwd: dir });
    expect(stderr).toMatch(/^gryphus: A batch script's job cannot have a value with a line end: ".*a\\nb/);
    expect(code).toBe(65);
  });

  it('without an interpreter are run by the shell that -S names', async () => {
    const cluster = await script(
      'shell.sh',
      '#$ -S /bin/bash\n#$ -cwd -o shell.out -t 7\nwords=(a b)\necho "${words[1]} $SGE_TASK_ID"\n',
    );
    await agent.ok('wait', `${cluster}`);
    expect(agent.read('shell.out')).toBe('b 7\n');
  });

  it('wait for the jobs that they depend on', async () => {
    const gate = `${agent.dir}/gate`;
    const first = await script(
      'first.sh',
      `#!/bin/sh\n#PBS -N first\nwhile [ ! -e ${gate} ]; do sleep 0.1; done\nexit 3\n`,
    );
    const then = (option: string) => script('then.sh', `#!/bin/sh\n#SBATCH -d ${option}\ndate +%s.%N\n`);
    const ok = await then(`afterok:${first}`);
    const removed = await then(`afterok:${first} --kill-on-invalid-dep=yes`);
    const failed = await then(`afternotok:${first}`);
    const any = await then(`afterany:${first},afterany:${failed}`);
    const named = await script('named.sh', `#!/bin/sh\n#$ -hold_jid first\n#$ -cwd\necho "$JOB_ID $SGE_TASK_ID"\n`);
    expect(await agent.ok('q', `${ok}`, '-af', 'HoldReason')).toBe(`waits for afterok:${first}\n`);
    agent.file('../gate', '');
    await agent.ok('wait', '--no-outcome', `${any}`, `${failed}`, `${named}`, `${removed}`);
    expect(agent.read(`named.sh.o${named}`)).toBe(`${named} undefined\n`);
    const at = (cluster: number) => Number(agent.read(`slurm-${cluster}.out`));
    expect(at(any)).toBeGreaterThan(at(failed));
    const seen = await until('the verdict', async () => {
      const reason = await agent.ok('q', `${ok}`, '-af', 'HoldReason');
      return reason.startsWith('Dependency') ? reason : undefined;
    });
    expect(seen).toBe(`DependencyNeverSatisfied: afterok:${first}\n`);
    const gone = await agent.ads(removed);
    expect(gone[0]?.['RemoveReason']).toBe('The dependency can no longer be met.');
    await agent.ok('rm', `${ok}`);
  });

  it('wait task by task, and array tasks that are made later wait no more', async () => {
    const first = await script('tasks.sh', '#!/bin/sh\n#SBATCH -a 1-3\n[ $SLURM_ARRAY_TASK_ID != 2 ]\n');
    const second = await script(
      'more.sh',
      `#!/bin/sh\n#SBATCH -a 1-3 -d aftercorr:${first} -o corr.%a\necho $SLURM_ARRAY_TASK_ID\n`,
    );
    const third = await script(
      'late.sh',
      `#!/bin/sh\n#SBATCH -a 1-4%1 -d afterany:${first} -o late.%a\necho $SLURM_ARRAY_TASK_ID\n`,
    );
    await agent.ok('wait', `${third}`, `${second}.0`, `${second}.2`);
    expect([1, 2, 3, 4].map((task) => agent.read(`late.${task}`))).toEqual(['1\n', '2\n', '3\n', '4\n']);
    expect(await agent.ok('q', `${second}`, '-af', 'ProcId', 'HoldReason')).toMatch(/^1 DependencyNeverSatisfied/);
    await agent.ok('rm', `${second}`);
  });

  it('wait for tasks that are made later', async () => {
    const first = await script(
      'made-later.sh',
      `#!/bin/sh\n#SBATCH -a 1-4%1 -o /dev/null\nwhile [ ! -e go-on ]; do sleep 0.1; done\ntouch made.$SLURM_ARRAY_TASK_ID\n`,
    );
    await agent.ok('wait', '--until', 'start', `${first}.0`);
    const then = (option: string, out: string) =>
      script(`${out}.sh`, `#!/bin/sh\n#SBATCH -d ${option} -o ${out}\necho made.*\n`);
    const ok = await then(`afterok:${first}_3`, 'after-three');
    const any = await then(`afterany:${first}_4`, 'after-four');
    const begun = await then(`after:${first}`, 'after-begun');
    agent.file('go-on', '');
    await agent.ok('wait', '--timeout', '40', `${ok}`, `${any}`, `${begun}`);
    expect(await agent.ok('q', `${ok}`, `${any}`, `${begun}`, '-af', 'HoldReason')).toBe('');
    expect(agent.read('after-three')).toMatch(/made\.3/);
    expect(agent.read('after-four')).toMatch(/made\.4/);
    expect(agent.read('after-begun')).toMatch(/made\.3/);
  });

  it('may run for longer than timers wait', async () => {
    const cluster = await script('month.sh', '#!/bin/sh\n#SBATCH -t 60-00:00:00 -o month\nsleep 1\necho done\n');
    await agent.ok('wait', '--until', 'settled', '--timeout', '5000000', `${cluster}`);
    expect(agent.read('month')).toBe('done\n');
  });

  it('are stopped at their time limit, and what they wrote comes home', async () => {
    const cluster = await script(
      'long.sh',
      '#!/bin/sh\n#PBS -l walltime=1\n#PBS -d . -o long.out\necho begun\nsleep 60\n',
    );
    const reason = await until('the hold', async () => {
      const [ad] = await agent.ads(cluster);
      return ad?.['JobStatus'] === 5 ? String(ad['HoldReason']) : undefined;
    });
    expect(reason).toMatch(/time/);
    expect(agent.read('long.out')).toBe('begun\n');
    await agent.ok('rm', `${cluster}`);
  });

  it('of several nodes start once, and their srun starts tasks on all nodes', async () => {
    await agent.ok('compat', 'install', join(agent.dir, 'bin'));
    const path = `${join(agent.dir, 'bin')}:${process.env['PATH'] ?? ''}`;
    agent.file(
      'nodes.sh',
      `#!/bin/sh
#SBATCH -N 2 --ntasks-per-node=2 --mem=50 -o nodes.out
echo "begins $SLURM_JOB_NODELIST $SLURM_NNODES $1"
export MADE="by the script's $"
srun sh -c 'echo "$SLURM_PROCID $SLURM_NODEID $SLURM_LOCALID $SLURM_NTASKS $_CONDOR_PROCNO $MADE"' sh >"tasks of $SLURM_JOB_ID"
srun -n 1 -N 1 cat <nodes.sh | head -n 1
srun -N 2 sh -c 'exit $((SLURM_NODEID * 5))'
exit $?
`,
    );
    const { stdout } = await agent.run(['submit', '--terse', 'nodes.sh', 'an argument'], { env: { PATH: path } });
    const cluster = Number(/^(\d+)\./.exec(stdout)?.[1]);
    await agent.ok('wait', '--no-outcome', `${cluster}`);
    expect((await agent.ads(cluster)).map((ad) => ad['ExitCode'])).toEqual([5]);
    const failed = (task: number) => `srun: error: node1: task ${task}: Exited with exit code 5`;
    const [begins, line, ...errors] = agent.read('nodes.out').trimEnd().split('\n');
    expect([begins, line, ...errors.sort()]).toEqual([
      'begins node[0-1] 2 an argument',
      '#!/bin/sh',
      failed(2),
      failed(3),
    ]);
    expect(agent.read(`tasks of ${cluster}`).trim().split('\n').sort()).toEqual(
      ['0 0 0 4 0', '1 0 1 4 0', '2 1 0 4 1', '3 1 1 4 1'].map((one) => `${one} by the script's $`),
    );
    const pbs = await script(
      'pbs.sh',
      '#!/bin/sh\n#PBS -l select=2:ncpus=2:mpiprocs=2 -d . -o pbs.out\ncat "$PBS_NODEFILE"\n',
    );
    await agent.ok('wait', `${pbs}`);
    expect(agent.read('pbs.out')).toBe('node0\nnode0\nnode1\nnode1\n');
  });

  it('from standard input, for another place, or without an interpreter', async () => {
    const { stdout, code } = await agent.run(['submit', '--terse'], {
      input: '#PBS -N in\n#PBS -d .\necho from $PBS_JOBNAME\n',
    });
    expect(code).toBe(0);
    const cluster = Number.parseInt(stdout, 10);
    await agent.ok('wait', `${cluster}`);
    expect(agent.read(`in.o${cluster}`)).toBe('from in\n');
    const nowhere = await agent.run(['submit', '--site', 'nowhere', 'first.sh']);
    expect(nowhere.stderr).toContain("There is no site 'nowhere'");
    agent.file('bare.sh', '#SBATCH -n 1\necho\n');
    expect((await agent.run(['submit', 'bare.sh'])).stderr).toContain('bare.sh does not begin with #!');
    expect(await agent.ok('submit', '--dry-run', '--json', 'first.sh')).toContain('"JobBatchName": "first"');
  });
});
