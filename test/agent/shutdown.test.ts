import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { daemons, startEverything } from './everything.ts';

/** What a user's session is given at its end, and how long after it nothing may come back, in milliseconds. */
const LIMIT_MS = 5000;
const AFTER_MS = 30_000;

describe.skipIf(!SLOW)('SIGTERM to every daemon at once, and to Redis, as at a shutdown', () => {
  let agent: TestAgent;
  beforeEach(() => {
    agent = new TestAgent();
  });
  afterEach(() => agent.end());

  it('ends all within 5 s, none comes back, and the next command goes on where they were', async () => {
    agent.file('ledger', '');
    const wait = `echo x >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.1; done`;
    const clusters = await startEverything(agent, `executable = /bin/sh\narguments = "-c '${wait}'"`);
    await until('three jobs', () => agent.read('ledger') === 'x\nx\nx\n' || undefined);
    for (const { pid } of daemons(agent)) process.kill(pid, 'SIGTERM');
    const since = performance.now();
    await until('the daemons to end', () => daemons(agent).length === 0 || undefined).catch(() => undefined);
    const took = performance.now() - since;
    expect(daemons(agent), agent.log('scheduler.log').slice(-2000)).toEqual([]);
    expect(took).toBeLessThan(LIMIT_MS);
    for (const end = Date.now() + AFTER_MS; Date.now() < end; await sleep(500)) expect(daemons(agent)).toEqual([]);

    agent.file('go', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '90', ...clusters.map(String));
    for (const cluster of clusters)
      expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
    await until('the DAG', () => agent.read('my.dag.dagman.out').includes('EXITING WITH STATUS 0') || undefined);
    expect(agent.read('ledger')).toBe('x\nx\nx\n');
  }, 240_000);
});
