import { afterAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';

describe('glideins for a GRAM service', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());

  it('are refused in one sentence, before anything is asked for', async () => {
    agent.site('grid', { url: 'gt2://localhost:1/jobmanager-fork', batch: 'gt2' });
    const { code, stderr } = await agent.run(['glidein', 'start', '--site', 'grid', '-n', '1']);
    expect({ code, stderr }).toEqual({ code: 65, stderr: expect.stringContaining('grid is a GRAM service') });
  }, 60_000);
});
