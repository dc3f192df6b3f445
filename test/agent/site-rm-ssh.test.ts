import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent } from './agent.ts';

describe('a site that is removed', () => {
  let agent: TestAgent;
  let sshd: Sshd;
  let there: string;

  beforeAll(async () => {
    sshd = await startSshd();
    agent = new TestAgent({ HOME: sshd.clientHome });
    there = join(sshd.home, '.gryphus/it');
  });
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  async function used(): Promise<void> {
    agent.site('it', { url: sshd.url, batch: 'fork' });
    agent.file('in', 'input');
    // A directory created by the job that no user may enter.
    agent.file('job.sh', '#!/bin/sh\nmkdir -p d/e && chmod 0 d\n', 0o755);
    const job = 'universe = grid\ngrid_resource = batch fork it\nexecutable = job.sh\ntransfer_input_files = in\n';
    const cluster = await agent.submit(`${job}log = log\nleave_in_queue = true\nqueue\n`);
    await agent.ok('wait', '--no-outcome', String(cluster), '--until', 'settled', '--timeout', '60');
    await agent.ok('rm', '--force', String(cluster));
    expect(readdirSync(there).length).toBeGreaterThan(0);
  }

  it('is said to keep what it has, and how that is removed', async () => {
    await used();
    const [, host = '', port = ''] = /^ssh:\/\/([^:]+):(\d+)$/.exec(sshd.url) ?? [];
    expect(await agent.ok('site', 'rm', 'it')).toBe(
      `Site it is removed.\nCached files remain there in ~/.gryphus/it. To remove them, too:\n  ssh -p ${port} ${host} 'rm -rf ~/.gryphus/it'\n`,
    );
    expect(readdirSync(there).length).toBeGreaterThan(0);
  }, 120_000);

  it('is emptied of what is ours alone with --clean', async () => {
    await used();
    mkdirSync(join(there, 'another-agent/jobs'), { recursive: true });
    expect(await agent.ok('site', 'rm', 'it', '--clean')).toBe('Site it is removed.\n');
    expect(readdirSync(there)).toEqual(['another-agent']);
    expect(existsSync(join(agent.home, 'sites/it.toml'))).toBe(false);
  }, 120_000);

  it('stays known where it cannot be reached', async () => {
    agent.site('it', { url: 'ssh://me@127.0.0.1:1', batch: 'fork' });
    const { code, stdout } = await agent.run(['site', 'rm', 'it', '--clean', '--force']);
    expect(code).not.toBe(0);
    expect(stdout).toBe('');
    expect(existsSync(join(agent.home, 'sites/it.toml'))).toBe(true);
  }, 60_000);
});
