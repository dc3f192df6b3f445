import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';

describe('a map that is left', () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  }, 60_000);
  afterAll(() => agent.end());

  const inputs = Array.from({ length: 400 }, (_, i) => String(i));

  it.each([
    ['by SIGTERM, as from timeout(1)', 'SIGTERM', 143],
    ['because its terminal was closed', 'SIGHUP', 129],
    ['because nobody reads what it prints', 'close', 141],
  ] as const)(
    '%s starts no more tasks',
    async (_, how, status) => {
      const ledger = `ledger-${how}`;
      const lines = () => (existsSync(join(agent.work, ledger)) ? agent.read(ledger).split('\n').length : 0);
      const map = agent.start(['map', `echo {} >>${ledger}; echo {}; sleep 0.1`, ':::', ...inputs]);
      const ended = new Promise<number | null>((resolve) => map.once('exit', resolve));
      await until('some tasks', () => lines() > 6 || undefined);
      if (how === 'close') map.stdout?.destroy();
      else map.kill(how);
      expect(await ended).toBe(status);
      const begun = lines();
      // These need all cores.
      await agent.ok('map', 'sleep 0.5', ':::', '1', '2', '3', '4');
      expect(lines()).toBe(begun);
    },
    60_000,
  );
});
