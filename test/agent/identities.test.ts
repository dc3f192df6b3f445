import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { TestAgent } from './agent.ts';
import { processesOf } from './kill.ts';

describe('two identities at one site', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());

  it('have a directory each; the audit sees both, and cleans orphans', async () => {
    const there = join(agent.dir, 'there');
    const site = (more = '') =>
      agent.site('here', { url: 'local', batch: 'fork', more: `scratch = ${JSON.stringify(there)}\n${more}` });
    const go = join(agent.dir, 'go');
    const submit = () =>
      agent.submit(
        [
          'universe = grid',
          'grid_resource = batch fork here',
          'executable = /bin/sh',
          'transfer_executable = false',
          `arguments = "-c 'while [ ! -e ${go} ]; do sleep 0.2; done'"`,
          'queue 2',
        ].join('\n'),
      );
    site();
    const plain = await submit();
    await agent.ok('wait', '--until', 'start', '--timeout', '60', String(plain));
    mkdirSync(join(agent.home, 'credentials'), { recursive: true, mode: 0o700 });
    writeFileSync(join(agent.home, 'credentials/acc.toml'), 'kind = "account"\nuntil = 2100-01-01\n', { mode: 0o600 });
    site('credential = "acc"\n');
    const other = await submit();
    await agent.ok('wait', '--until', 'start', '--timeout', '60', String(other));

    const status = JSON.parse(await agent.ok('status', '--json')) as { managers: readonly { identity: string }[] };
    expect(status.managers).toHaveLength(2);
    const [own = ''] = readdirSync(join(there, 'here')).filter((name) => name.startsWith('+'));
    const [agentId = ''] = readdirSync(join(there, 'here', own));
    const jobs = (...place: string[]) => readdirSync(join(there, 'here', ...place, agentId, 'jobs')).sort();
    expect(jobs()).toEqual([0, 1].map((proc) => `${agentId}.${plain}.${proc}.1`));
    expect(jobs(own)).toEqual([0, 1].map((proc) => `${agentId}.${other}.${proc}.1`));
    expect(await agent.ok('site', 'audit', 'here')).toContain('agree');

    // Nothing handles what the site still has of jobs that left the queue while their GridManagers were not running.
    for (const pid of processesOf('gridmanager/main.js', agent)) process.kill(pid, 'SIGSTOP');
    await agent.ok('rm', '--forcex', `${plain}.0`, `${other}.0`);
    const lost = [plain, other].map((cluster) => `${agentId}.${cluster}.0.1`);
    const audit = await agent.run(['site', 'audit', 'here', '--clean', 'all']);
    for (const key of lost) expect(audit.stdout).toMatch(new RegExp(`^${key} .*only at the site.*\\(cleaned\\)$`, 'm'));
    for (const pid of processesOf('gridmanager/main.js', agent)) process.kill(pid, 'SIGCONT');
    writeFileSync(go, '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(plain), String(other));
    expect(await agent.ok('site', 'audit', 'here')).toContain('agree');
  }, 180_000);
});
