import { afterAll, beforeAll } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

/** For a `describe`: an agent whose pool has two cores and restarts its daemons quickly. `counter`: the text of counter.sh. */
export function quickPool(counter: string): TestAgent {
  const agent = new TestAgent();
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 2\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    agent.file('counter.sh', counter, 0o755);
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });
  return agent;
}
