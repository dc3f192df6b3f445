import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { join } from 'node:path';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';

describe.skipIf(skipWithoutSlurm())('gryphus run at sites behind ssh', { timeout: 240_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd();
    slurm = await startSlurm({ nodes: 1, cpus: 4 });
    agent = new TestAgent({ HOME: sshd.clientHome, SSH_AUTH_SOCK: undefined });
    const more = '[limits]\npoll_min = "1s"\n';
    agent.site('login', { url: sshd.url, batch: 'fork', more });
    const prelude = `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`;
    agent.site('cluster', { url: sshd.url, batch: 'slurm', prelude, more });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
    await sshd?.stop();
  });

  const words = ['a b', "it's", 'two\nlines', '$(HOME) $HOME `id`', 'ünï ☃', '', '*', '--'];

  it.each(['login', 'cluster'])('at %s: arguments, streams, input and exit status', async (site) => {
    const script = 'cat; echo err >&2; printf "%s\\0" "$@"; exit 9';
    const ran = await agent.run(['run', '--site', site, '--', 'sh', '-c', script, 'sh', ...words], { input: 'in|' });
    expect(ran).toEqual({ code: 9, stdout: `in|${words.map((word) => `${word}\0`).join('')}`, stderr: 'err\n' });
  });

  it('asks Slurm for what it was asked for', async () => {
    const script = 'scontrol show job $SLURM_JOB_ID | grep -oE "TimeLimit=[^ ]*|CPUs/Task=[^ ]*"';
    const ran = await agent.run(
      ['run', '--site', 'cluster', '--cpus', '2', '--memory', '1G', '--time', '1:30:00', '--', 'bash', '-c', script],
      { input: '' },
    );
    expect(ran.stdout).toContain('TimeLimit=01:30:00');
    expect(ran.stdout).toContain('CPUs/Task=2');
  });

  it('answers a queue that the site does not have with those that it has', async () => {
    const { code, stderr } = await agent.run([
      'run',
      '--site',
      'cluster',
      '--queue',
      'nosuch',
      '--no-stdin',
      '--',
      'true',
    ]);
    expect(code).toBe(125);
    expect(stderr).toMatch(/invalid partition.*Queues there: \w+/i);
    await agent.ok('rm', '--all');
  });

  it('shows output through Slurm while the job runs, also after the connection was cut', async () => {
    const go = join(agent.dir, 'go');
    const script = `echo one; until [ -e ${go} ]; do sleep 0.2; done; echo two; exit 3`;
    const child = agent.start(['run', '--site', 'cluster', '--', 'sh', '-c', script]);
    let stdout = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stdin?.end();
    const code = new Promise((resolve) => child.once('close', resolve));
    await until('the first line', () => (stdout === 'one\n' ? true : undefined));
    sshd.killSessions();
    agent.file('../go', '');
    expect(await code).toBe(3);
    expect(stdout).toBe('one\ntwo\n');
  });

  it('Ctrl-C takes the job out of Slurm', async () => {
    const child = agent.start(['run', '--site', 'cluster', '--', 'sh', '-c', 'echo begun; sleep 300']);
    let stdout = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stdin?.end();
    const code = new Promise((resolve) => child.once('close', resolve));
    await until('its output', () => (stdout === 'begun\n' ? true : undefined));
    child.kill('SIGINT');
    expect(await code).toBe(130);
    await until('an empty queue', () => (slurm.run('squeue', '-h', '-t', 'R').trim() === '' ? true : undefined));
  });
});
