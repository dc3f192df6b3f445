import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { type Sge, skipWithoutSge, startSge } from '../sites/sge.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { each, GlideinAgent } from './ground.ts';

describe.skipIf(skipWithoutSge())('glideins through Grid Engine, at a site that forwards nothing', () => {
  let agent: GlideinAgent;
  let sshd: Sshd;
  let sge: Sge;

  beforeAll(async () => {
    agent = new GlideinAgent();
    agent.configure('idle = "120s"');
    sge = await startSge({ slots: 8 });
    // Like a site whose nodes see only the shared file system: mailboxes are the only connection.
    sshd = await startSshd({ config: ['AllowTcpForwarding no', 'AllowStreamLocalForwarding no'] });
    agent.env['HOME'] = sshd.clientHome;
    agent.site('grid', {
      url: sshd.url,
      batch: 'sge',
      prelude: Object.entries(sge.env)
        .map(([name, value]) => `export ${name}='${value}'`)
        .join('; '),
      more: '[limits]\npoll_min = "1s"\npoll_max = "3s"\n',
    });
    await agent.ok('up');
  }, 90_000);
  afterAll(async () => {
    await agent.end();
    await sge?.stop();
    await sshd?.stop();
  });

  it('run 40 jobs by mailbox, each once, over cuts', async () => {
    await agent.ok('glidein', 'start', '--site', 'grid', '-n', '3', '--walltime', '1h', '--cores', '2');
    await agent.untilHome();
    const cluster = await agent.submit(agent.jobs('ledger', 40, 0.2, 'max_retries = 9'));
    for (const count of [2, 15]) {
      await until('some jobs to end', () => agent.ledger('ledger').length > count || undefined, 60_000);
      sshd.killSessions();
    }
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(cluster));
    expect(agent.ledger('ledger')).toEqual(each(40));
    for (const n of each(40)) expect(agent.read(`ledger.${n}.out`)).toBe(`job ${n}\n`);
    const shown = await agent.ok('site', 'show', 'grid');
    expect(shown).toMatch(/mailbox: files in .*, for nodes without a network/);
    expect(shown).toMatch(/ssh: not used \(/);
    await agent.ok('glidein', 'stop', '--site', 'grid');
    await agent.untilOver();
  }, 240_000);

  it.skipIf(!SLOW)(
    'begin nothing that would not end within their allocation, leave in its last minute, and others continue',
    async () => {
      // A worker starts nothing in its last 90 seconds; this one has half a minute.
      await agent.ok('glidein', 'start', '--site', 'grid', '-n', '1', '--walltime', '120s');
      await agent.untilHome();
      const cluster = await agent.submit(agent.jobs('short', 40, 2, 'max_retries = 9'));
      await until('some jobs to end', () => agent.ledger('short').length > 1 || undefined, 60_000);
      await until('the pilot to end by itself', async () => (await agent.pilots()).length === 0 || undefined, 120_000);
      expect(agent.ledger('short').length).toBeLessThan(40);
      await agent.ok('glidein', 'start', '--site', 'grid', '-n', '4', '--walltime', '1h');
      await agent.ok('wait', '--no-outcome', '--timeout', '180', String(cluster));
      expect(agent.ledger('short')).toEqual(each(40));
      await agent.ok('glidein', 'stop', '--all');
      await agent.untilOver();
    },
    480_000,
  );
});
