import { afterEach, expect, it } from 'vitest';
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

it('a partner to whom jobs are to be passed on, and who is none, is named', async () => {
  agent = new TestAgent();
  const add = (name: string, ...words: string[]) =>
    agent.ok('flock', 'add', name, '--new-key', `${name}.key`, ...words);
  const said = 'There is no partner chem yet: nothing is passed on to it before there is.\n';
  expect(await add('physics', '--from', '--forward', 'chem')).toContain(said);
  expect(await add('chem', '--to', '--url', '127.0.0.1:1')).not.toContain('There is no partner');
  expect(await add('history', '--from', '--forward', 'chem')).not.toContain('There is no partner');
  expect((await agent.run(['flock', 'add', 'bio', '--to', '--new-key', 'bio.key', '--hops', '4'])).stderr).toMatch(
    /hops/,
  );
});
