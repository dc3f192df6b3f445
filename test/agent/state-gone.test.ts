import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { kill, processes } from './kill.ts';
import { TestAgent, until } from './agent.ts';
import { daemons, startEverything } from './everything.ts';

let agent: TestAgent;
let other: TestAgent;
beforeEach(() => {
  agent = new TestAgent();
  other = new TestAgent();
});
afterEach(async () => {
  for (const { pid } of processes(agent)) kill(pid);
  await agent.end();
  await other.end();
});

const LIMIT_MS = 10_000;
it.each(['removed', "replaced by another agent's"])(
  'daemons whose state directory is %s end within 10 s, make no file there, and touch nobody else',
  async (how) => {
    await other.ok('up');
    const others = daemons(other).map(({ pid }) => pid);
    await startEverything(agent, 'executable = /bin/sleep\narguments = 600');
    const state = join(agent.home, 'state');
    if (how === 'removed') rmSync(state, { recursive: true, maxRetries: 20 });
    else {
      renameSync(state, `${state}.old`);
      // At once, before a daemon could make it anew.
      mkdirSync(state, { mode: 0o700 });
      rmSync(`${state}.old`, { recursive: true, maxRetries: 20 });
    }
    const since = performance.now();
    const left = await until('the daemons to end', () => daemons(agent).length === 0 || undefined, 40_000).then(
      () => [],
      () => daemons(agent),
    );
    expect(left).toEqual([]);
    expect(performance.now() - since).toBeLessThan(LIMIT_MS);
    expect(existsSync(join(state, 'log'))).toBe(false);
    // The job at the site is still there.
    expect(processes(agent).some(({ what }) => what.startsWith('/bin/sleep 600'))).toBe(true);
    expect(daemons(other).map(({ pid }) => pid)).toEqual(expect.arrayContaining(others));
  },
  180_000,
);
