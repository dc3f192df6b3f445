import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';

describe('a job in the pool with a number that is none', () => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  it('runs if the number has a nearest one', async () => {
    const lines = ['job_lease_duration = -5', 'job_max_vacate_time = -1', 'core_size = 1.0E30'];
    for (const line of lines) {
      const cluster = await agent.submit(`executable = /bin/true\n${line}\nqueue\n`);
      await agent.ok('wait', '--timeout', '60', String(cluster));
    }
  }, 90_000);

  it('is held, with the reason, and no other job waits for it', async () => {
    const wrong = await agent.submit('executable = /bin/true\nrequest_memory = real("inf")\nqueue\n');
    const next = await agent.submit('executable = /bin/true\nqueue\n');
    await agent.ok('wait', '--timeout', '60', String(next));
    await agent.ok('wait', '--until', 'settled', '--no-outcome', '--timeout', '60', String(wrong));
    expect(await agent.ok('q', String(wrong), '-af', 'JobStatus', 'HoldReason')).toMatch(
      /^5 Site pool: The pool cannot take the job: size\.memoryMb: /,
    );
  }, 90_000);
});
