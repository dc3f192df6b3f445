import { appendFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readmeBlocks } from '../readme.ts';
import { skipWithoutSlurm, startSlurm, type Slurm } from '../sites/slurm.ts';
import { startSshd, type Sshd } from '../sites/sshd.ts';
import { CLI, TestAgent } from './agent.ts';

/** The README's own commands, verbatim; only the meaning of its host names is ours, as in any ~/.ssh/config. */
describe.skipIf(skipWithoutSlurm())("the README's sites", () => {
  let sshd: Sshd;
  let slurm: Slurm;
  let agent: TestAgent;
  const blocks = readmeBlocks('sh');

  beforeAll(async () => {
    slurm = await startSlurm({ nodes: 1, cpus: 2 });
    const bin = join(slurm.dir, 'bin');
    sshd = await startSshd({ env: slurm.env });
    agent = new TestAgent({ HOME: sshd.clientHome });
    mkdirSync(bin, { recursive: true });
    symlinkSync(CLI, join(bin, 'gryphus'));
    agent.env['PATH'] = `${bin}:${process.env['PATH'] ?? ''}`;
    const { port } = new URL(sshd.url);
    appendFileSync(
      join(sshd.clientHome, '.ssh/config'),
      `\nHost box.example.org login.example.org\n  HostName 127.0.0.1\n  Port ${port}\n`,
    );
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await slurm.stop();
    await sshd.stop();
  });

  function paste(heading: string): string {
    const script = blocks.get(heading)?.join('\n') ?? '';
    expect(script).not.toBe('');
    const { status, stdout, stderr } = spawnSync('bash', ['-e', '-c', script], {
      cwd: agent.work,
      env: agent.env,
      encoding: 'utf8',
    });
    expect(status, `${stdout}${stderr}`).toBe(0);
    return stdout;
  }

  it('a job on an SSH host', () => {
    expect(paste('A job on an SSH host').trimEnd().split('\n').at(-1)).toBe(hostname());
  }, 120_000);

  it('a job on a Slurm cluster, which is detected', () => {
    expect(paste('A job on a Slurm cluster').trimEnd().split('\n').at(-1)).toBe(hostname());
    expect(readFileSync(join(agent.home, 'sites/cluster1.toml'), 'utf8')).toContain('batch = "slurm"');
  }, 120_000);
});
