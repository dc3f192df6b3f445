import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';

describe('two sites on one machine, with one home', () => {
  let agent: TestAgent;
  let sshd: Sshd;

  beforeAll(async () => {
    sshd = await startSshd();
    agent = new TestAgent({ HOME: sshd.clientHome });
    agent.config('[gridmanager]\nretry_max = "1s"\n');
    for (const name of ['front', 'other']) {
      agent.site(name, { url: sshd.url, batch: 'fork', more: '[limits]\nrunning = 8\n' });
    }
    await agent.ok('up');
  });
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  const submit = (site: string, seconds: number) =>
    agent.submit(
      [
        'universe = grid',
        `grid_resource = batch fork ${site}`,
        'executable = /bin/sleep',
        `arguments = ${seconds}`,
        'transfer_executable = false',
        'queue 6',
      ].join('\n'),
    );
  const managers = () => agent.log('scheduler.log').match(/GridManager started/g)?.length;

  it('hear each of their own jobs, however often they look', async () => {
    const clusters: string[] = [];
    for (let i = 0; i < 3; i++) clusters.push(String(await submit('front', 0)), String(await submit('other', 0)));
    await agent.ok('wait', '--no-outcome', '--timeout', '60', ...clusters);
  }, 90_000);

  it('keep their GridManager when the machine dies, and continue when it is back', async () => {
    const clusters = [await submit('front', 15), await submit('other', 15)];
    await agent.ok('wait', '--until', 'start', '--timeout', '60', ...clusters.map(String));
    const before = managers();
    sshd.kill();
    await until('the loss to be seen', async () => {
      return (await agent.ok('site', 'list')).includes('does not answer') || undefined;
    });
    await sshd.restart();
    await agent.ok('wait', '--no-outcome', '--timeout', '60', ...clusters.map(String));
    expect(managers()).toBe(before);
  }, 120_000);
});
