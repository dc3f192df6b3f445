import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { freePort } from '../sites/ports.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { each, GlideinAgent } from './ground.ts';

describe('the factory of an agent', () => {
  let agent: GlideinAgent;
  let sshd: Sshd;
  let port: number;

  beforeAll(async () => {
    sshd = await startSshd();
    port = await freePort();
    agent = new GlideinAgent();
    agent.configure('idle = "15s"', `listen = "127.0.0.1:${port}"`);
    agent.env['HOME'] = sshd.clientHome;
    const more = '[limits]\nrunning = 4\n[glidein]\nmax = 2\ncores = 2\nwalltime = "1h"\n';
    agent.site('good', { url: sshd.url, batch: 'fork', more });
    // Its nodes have no disk space.
    agent.site('bad', {
      url: sshd.url,
      batch: 'fork',
      more: `${more}scratch = "/proc"\n`,
      prelude: 'df() { echo; echo a b c 1; }',
    });
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  it('starts pilots for jobs that wait, by its own port, and they end when there is nothing more', async () => {
    const cluster = await agent.submit(agent.jobs('ledger', 12, 0.2, '+WantGlidein = true'));
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(cluster));
    expect(agent.ledger('ledger')).toEqual(each(12));
    const pilots = await agent.pilots();
    expect(pilots.every((pilot) => pilot.by === 'factory')).toBe(true);
    expect(pilots.length).toBeLessThanOrEqual(4);
    expect(await agent.ok('site', 'show', 'good')).toContain(`port 127.0.0.1:${port}: `);
    expect(agent.log('scheduler.log')).toContain('for waiting jobs');
    await agent.untilOver();
  }, 180_000);

  it.skipIf(!SLOW)(
    'starts none for jobs that do not want one',
    async () => {
      const cluster = await agent.submit(agent.jobs('alone', 1, 0, '+WantGlidein = false'));
      const asked = () => agent.log('scheduler.log').split('for waiting jobs').length;
      const before = asked();
      // A later job that does want a pilot proves that the factory has run.
      const other = await agent.submit(agent.jobs('other', 1, 0));
      await until('pilots for the other', () => asked() > before || undefined, 60_000);
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(other));
      await agent.ok('rm', String(cluster)).catch(() => undefined);
      await agent.untilOver();
    },
    180_000,
  );
});
