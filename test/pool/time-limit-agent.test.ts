import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

describe('the time limit of a job in the pool', () => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  it('may be longer than any timer of Node', async () => {
    const cluster = await agent.submit('executable = /bin/true\nbatch_runtime = 30d\nqueue\n');
    await agent.ok('wait', '--timeout', '60', String(cluster));
    expect(await agent.ok('wait', '--timeout', '3000000', String(cluster))).toContain('All jobs done.');
  }, 90_000);

  it('holds although the worker was started anew meanwhile', async () => {
    const cluster = await agent.submit('executable = /bin/sleep\narguments = 300\nbatch_runtime = 6\nqueue\n');
    const status = () => agent.ok('q', String(cluster), '-af', 'JobStatus', 'HoldReason');
    await until('the start', async () => (await status()).startsWith('2') || undefined);
    killMatching('worker.mjs', agent);
    await agent.ok('wait', '--until', 'settled', '--no-outcome', '--timeout', '60', String(cluster));
    expect(await status()).toMatch(/^5 The site ended it at its time limit/);
  }, 90_000);
});
