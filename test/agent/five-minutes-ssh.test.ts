import { appendFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, afterAll, describe, expect, it } from 'vitest';
import { everyBlock } from '../readme.ts';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { publicKeyOf } from '../sites/ssh-keys.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { CLI, TestAgent } from './agent.ts';
import { call } from './said.ts';

const HERE = hostname();

/**
 * The pages "in five minutes", typed by somebody who begins: each on a new agent, from the first command to the last. Only the
 * meaning of the host names is ours: each is a Slurm behind an sshd.
 */
describe.skipIf(!SLOW || skipWithoutSlurm())('a newcomer with the page', { timeout: 400_000 }, () => {
  const clusters: { readonly slurm: Slurm; readonly sshd: Sshd }[] = [];
  let agent: TestAgent;

  beforeAll(async () => {
    for (const _ of ['login.example.org', 'login.example.com']) {
      const slurm = await startSlurm({ nodes: 1, cpus: 2 });
      clusters.push({ slurm, sshd: await startSshd({ env: slurm.env }) });
    }
    // One key and one list of known hosts for both.
    const [first, second] = clusters.map(({ sshd }) => sshd);
    if (first === undefined || second === undefined) throw new Error('two clusters are needed');
    appendFileSync(join(second.configDir, 'authorized_keys'), `${publicKeyOf(first.keyFile)}\n`);
    appendFileSync(join(first.clientHome, '.ssh/known_hosts'), readFileSync(second.knownHostsFile, 'utf8'));
    const hosts = [
      ['login.example.org', first.port],
      ['login.example.com', second.port],
    ].map(([name, port]) => `\nHost ${name}\n  HostName 127.0.0.1\n  Port ${port}\n`);
    appendFileSync(join(first.clientHome, '.ssh/config'), hosts.join(''));
  }, 120_000);
  afterEach(() => agent.end());
  afterAll(async () => {
    for (const { slurm, sshd } of clusters) {
      await slurm.stop();
      await sshd.stop();
    }
  });

  async function follow(page: string): Promise<string> {
    agent = new TestAgent({ HOME: clusters[0]?.sshd.clientHome });
    const bin = join(agent.dir, 'bin');
    mkdirSync(bin);
    symlinkSync(CLI, join(bin, 'gryphus'));
    const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
    const script = everyBlock('sh', `docs/five-minutes/${page}`);
    expect(script).not.toBe('');
    const { code, stdout, stderr } = await call(agent, env, 'bash', ['-e', '-c', script]);
    const shown = process.env['GRYPHUS_SHOW'];
    if (shown !== undefined) writeFileSync(join(shown, `${page}.txt`), `${stdout}\n== errors\n${stderr}\n== ${code}\n`);
    expect(code, `${stdout}${stderr}`).toBe(0);
    return stdout;
  }

  it('for Slurm users', async () => {
    const said = await follow('slurm.md');
    for (const task of [1, 2, 3, 4]) expect(said).toContain(`task ${task} on ${HERE}\n`);
    expect(said).toContain('no such parameter: beta');
    expect(said).toContain('hello from Slurm\n');
  });

  it('for HTCondor users', async () => {
    const said = await follow('htcondor.md');
    expect(said.match(/^3\.\d+$/gm)?.length).toBe(4);
    expect(said).toMatch(/diamond.dag.*: done/);
  });

  it('for GNU parallel users', async () => {
    const said = await follow('parallel.md');
    expect(said).toContain('4 squared is 16\n');
    expect(said).toContain('x=3 y=4\n');
    expect(said.match(/^[0-9a-f]{32} {2}part\d\.txt$/gm)?.length).toBe(3);
  });

  it('for users of two clusters', async () => {
    const said = await follow('two-clusters.md');
    for (const job of [0, 1, 2, 3]) expect(said).toContain(`job ${job} ran on ${HERE}\n`);
    expect(said).toContain(`10 on ${HERE}\n`);
    expect(said).toMatch(/batch slurm cluster[12]/);
  });
});
