import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { daemons } from './everything.ts';
import { processes } from './kill.ts';

let agent: TestAgent;
beforeAll(() => {
  agent = new TestAgent();
});
afterAll(() => agent.end());

it('jobs of this machine that are told to end with the whole session have not completed', async () => {
  agent.file('job.sh', `#!/bin/sh\necho $1 >>'${agent.work}/ledger'; exec sleep 600\n`, 0o755);
  agent.file('ledger', '');
  const job = `executable = ${agent.work}/job.sh\ntransfer_executable = false\n`;
  const pool = await agent.submit(`${job}arguments = pool\nlog = pool.log\nqueue\n`);
  const site = await agent.submit(
    `universe = grid\ngrid_resource = batch fork local\n${job}arguments = site\nlog = site.log\nqueue\n`,
  );
  await until('both to run', () => agent.read('ledger').split('\n').length === 3 || undefined);
  await until('that to be known', () => /^001 /m.test(agent.read('pool.log') + agent.read('site.log')) || undefined);

  // As systemd ends a session: all its processes at once.
  const session = processes(agent).map(({ pid }) => pid);
  for (const signal of ['SIGTERM', 'SIGHUP'] as const)
    for (const pid of session) {
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended.
      }
    }
  await until('all to end', () => daemons(agent).length === 0 || undefined, 30_000);

  await agent.ok('up');
  const starts = (what: string) =>
    agent
      .read('ledger')
      .split('\n')
      .filter((line) => line === what).length;
  await until('the pool job to run again', () => starts('pool') === 2 || undefined);
  await until('the other to be held', async () => (await agent.ads(site))[0]?.['JobStatus'] === 5 || undefined);
  const [held] = await agent.ads(site);
  expect(held).toMatchObject({ HoldReasonCode: 35 });
  expect(held?.['HoldReason']).toContain('told to end');
  expect(starts('site')).toBe(1);
  expect(agent.read('pool.log')).toMatch(/^004 /m);
  expect(agent.read('pool.log')).not.toMatch(/^005 /m);
  await agent.ok('rm', String(pool), String(site));
});
