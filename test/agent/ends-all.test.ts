import { afterEach, beforeEach, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { processes } from './kill.ts';

let agent: TestAgent;
beforeEach(() => {
  agent = new TestAgent();
});
afterEach(() => agent.end());

it('an agent of the tests leaves no process of a job that was running', async () => {
  await agent.submit(
    'executable = /bin/sh\narguments = "-c \'trap : TERM INT; sleep 3600\'"\ntransfer_executable = false\nqueue 2\n',
  );
  const sleeps = () => processes(agent).filter(({ what }) => what.endsWith('sleep 3600'));
  await until('both jobs', () => (sleeps().length >= 2 ? true : undefined));
  await agent.end();
  expect(processes(agent)).toEqual([]);
});
