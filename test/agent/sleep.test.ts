import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';
import { processesOf } from './kill.ts';

/** A lease of the daemons lasts 15 s: they wake long after their leases have expired. */
const ASLEEP_MS = 20_000;

describe('a laptop that sleeps', () => {
  let agent: TestAgent;
  let sshd: Sshd;
  beforeAll(async () => {
    sshd = await startSshd();
    agent = new TestAgent({ HOME: sshd.clientHome });
    agent.config('[gridmanager]\nretry_max = "1s"\n');
    agent.site('far', { url: sshd.url, batch: 'fork', more: '[limits]\nrunning = 3\n' });
    agent.site('near', { url: 'local', batch: 'fork', more: `scratch = "${agent.dir}/near"\n[limits]\nrunning = 3\n` });
  });
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  it('runs each job once, here and at a site that was awake', async () => {
    const ledger = agent.file('ledger', '');
    const submit = (site: string) =>
      agent.submit(
        [
          'universe = grid',
          `grid_resource = batch fork ${site}`,
          'executable = /bin/sh',
          'transfer_executable = false',
          `arguments = "-c 'echo ${site} $(Process) >>${ledger}; sleep 2'"`,
          'queue 9',
        ].join('\n'),
      );
    const clusters = [await submit('far'), await submit('near')];
    const lines = () => readFileSync(ledger, 'utf8').trim().split('\n').sort();
    await until(
      'some to run at both',
      () => (lines().join().includes('far') && lines().join().includes('near')) || undefined,
      60_000,
    );

    const all = processesOf('.', agent);
    expect(all.length).toBeGreaterThan(2);
    const signal = (name: NodeJS.Signals) => {
      for (const pid of all) {
        try {
          process.kill(pid, name);
        } catch {
          // It had ended.
        }
      }
    };
    signal('SIGSTOP');
    await sleep(ASLEEP_MS);
    signal('SIGCONT');

    await agent.ok('wait', '--no-outcome', '--timeout', '90', ...clusters.map(String));
    expect(lines()).toEqual(['far', 'near'].flatMap((site) => Array.from({ length: 9 }, (_, i) => `${site} ${i}`)));
    for (const cluster of clusters)
      for (const ad of await agent.ads(cluster)) expect(ad).toMatchObject({ JobStatus: 4, NumJobStarts: 1 });
  }, 180_000);
});
