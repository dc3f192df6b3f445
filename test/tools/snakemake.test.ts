import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { killMatching } from '../agent/kill.ts';
import { type TestAgent, until } from '../agent/agent.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { agentForTools, skipWithout, startTool, type Tool } from './ground.ts';

/** `jobs` files, one of each rule's job, and their sum. */
function workflow(jobs: number, shell = 'echo {wildcards.i} > {output}'): string {
  return `rule all:
    input: "sum.txt"
rule one:
    output: "out/{i}.txt"
    resources: mem_mb=64, runtime=5
    shell: ${JSON.stringify(shell)}
rule total:
    input: expand("out/{i}.txt", i=range(${jobs}))
    output: "sum.txt"
    resources: mem_mb=64, runtime=5
    shell: "cat {input} | awk '{{s+=$1}} END {{print s}}' > {output}"
`;
}

const LIMITS = ['--max-jobs-per-second', '20', '--max-status-checks-per-second', '10', '--latency-wait', '30'];

describe.skipIf(skipWithout('snakemake'))('snakemake 7.21', { timeout: 1_800_000 }, () => {
  let agent: TestAgent;
  beforeEach(async () => {
    agent = await agentForTools();
    await agent.ok('up');
  });
  afterEach(async () => agent?.end());

  const snakemake = (...args: string[]): Tool => startTool(agent, 'snakemake', [...args, ...LIMITS]);
  const succeeded = async (tool: Tool, sum: number) => {
    const code = await tool.ended;
    expect(code === 0 ? '' : tool.said()).toBe('');
    expect(agent.read('sum.txt')).toBe(`${sum}\n`);
  };
  const jobsNow = async () => JSON.parse(await agent.ok('q', '--json')) as unknown[];

  it('runs a workflow by --slurm', async () => {
    agent.file('Snakefile', workflow(3));
    await succeeded(snakemake('--slurm', '-j', '4'), 3);
  });

  it('runs 200 jobs with our profile while the Scheduler is killed', async () => {
    agent.file('Snakefile', workflow(200));
    const profile = join(agent.dir, 'profile');
    await agent.ok('compat', 'profile', 'snakemake', profile);
    const tool = snakemake('--profile', profile);
    const made = () => (existsSync(join(agent.work, 'out')) ? readdirSync(join(agent.work, 'out')).length : 0);
    await until('some results', () => made() > 20 || undefined, 600_000);
    killMatching('scheduler/main.js', agent);
    await succeeded(tool, 19_900);
  });

  it('reports a failing rule by --cluster, and finishes it after a repair', async () => {
    agent.file('Snakefile', workflow(3, 'test {wildcards.i} != 1 && echo {wildcards.i} > {output}'));
    agent.file('state', STATUS, 0o755);
    const cluster = [
      '--cluster',
      'sbatch --parsable -c {threads} --mem={resources.mem_mb} -t {resources.runtime} -o slurm-%j.log',
      '--cluster-status',
      './state',
      '--cluster-cancel',
      'scancel',
      '-j',
      '4',
    ];
    const failed = snakemake(...cluster, '--keep-going');
    expect(await failed.ended).toBe(1);
    expect(failed.said()).toMatch(/Error in rule one:[^]*out\/1\.txt/);
    expect(readdirSync(join(agent.work, 'out')).sort()).toEqual(['0.txt', '2.txt']);
    agent.file('Snakefile', workflow(3));
    await succeeded(snakemake(...cluster, '--rerun-incomplete', '--rerun-triggers', 'mtime'), 3);
  });

  it('is cancelled with its jobs by Ctrl-C, and started again', async () => {
    agent.file('Snakefile', workflow(3, 'while [ -e closed ]; do sleep 0.2; done; echo {wildcards.i} > {output}'));
    const gate = agent.file('closed', '');
    const profile = join(agent.dir, 'profile');
    await agent.ok('compat', 'profile', 'snakemake', profile);
    const tool = snakemake('--profile', profile);
    await until('its jobs', async () => (await jobsNow()).length === 3 || undefined, 300_000);
    tool.interrupt();
    expect(await tool.ended).not.toBe(0);
    await until('an empty queue', async () => (await jobsNow()).length === 0 || undefined);
    rmSync(gate);
    const again = snakemake('--profile', profile, '--rerun-incomplete');
    await succeeded(again, 3);
  });

  it('runs at a site whose sshd is killed in the middle', async () => {
    const sshd: Sshd = await startSshd({ env: { PATH: agent.env['PATH'] ?? '' } });
    try {
      agent.env['HOME'] = sshd.clientHome;
      await agent.ok('down');
      agent.site('far', { url: sshd.url, batch: 'fork', more: '[limits]\npoll_min = "1s"\n' });
      agent.file('Snakefile', workflow(6, 'sleep 3; echo {wildcards.i} > {output}'));
      const profile = join(agent.dir, 'profile');
      await agent.ok('compat', 'profile', 'snakemake', profile);
      const tool = snakemake('--profile', profile, '--default-resources', 'site="far"');
      await until('a result', () => existsSync(join(agent.work, 'out')) || undefined, 300_000);
      sshd.kill();
      await until(
        'the agent to notice',
        async () => (await agent.ok('site', 'list')).includes('does not answer') || undefined,
      );
      await sshd.restart();
      await succeeded(tool, 15);
    } finally {
      await sshd.stop();
    }
  });
});

/** As profiles for Slurm do it, by sacct and scontrol. */
const STATUS = `#!/bin/sh
state=$(sacct -j "$1" -X -n -P -o State | head -n 1)
[ -n "$state" ] || state=$(scontrol show job "$1" | sed -n 's/.*JobState=\\([A-Z_]*\\).*/\\1/p')
case $state in
COMPLETED) echo success ;;
PENDING | RUNNING | SUSPENDED | COMPLETING | '') echo running ;;
*) echo failed ;;
esac
`;
