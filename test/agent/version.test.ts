import { expect, it } from 'vitest';
import { TestAgent } from './agent.ts';

it('the version is printed the same way with and without loading the command line', async () => {
  const agent = new TestAgent();
  try {
    expect(await agent.ok('--version')).toBe(await agent.ok('version'));
  } finally {
    await agent.end();
  }
});
