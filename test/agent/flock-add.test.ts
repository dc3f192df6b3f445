import { afterEach, it } from 'vitest';
import { answers, freePort } from '../sites/ports.ts';
import { TestAgent, until } from './agent.ts';

let agent: TestAgent;
afterEach(() => agent.end());

it('who waits for a partner’s gateway to connect listens once the agreement is made', async () => {
  agent = new TestAgent();
  const port = await freePort();
  await agent.ok('config', 'flock.listen', `127.0.0.1:${port}`);
  await agent.ok('flock', 'add', 'physics', '--from', '--new-key', 'physics.key');
  await until('the gateway to listen', async () => (await answers(port)) || undefined);
});
