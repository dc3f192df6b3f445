import { expect, it } from 'vitest';
import { Census } from '../../src/gridmanager/census.ts';
import type { Place } from '../../src/queue/api.ts';

it('knows at how many sites all GridManagers of the agent watch jobs, since together they poll the quiet ones', async () => {
  const places: Place[] = [
    { manager: 'me', site: 'a', state: 'running', jobs: 3 },
    { manager: 'me', site: 'a', state: 'committed', jobs: 1 },
    { manager: 'me', site: 'b', state: 'running', jobs: 1 },
    { manager: 'other', site: 'a', state: 'suspended', jobs: 1 },
    { manager: 'other', site: 'c', state: 'idle', jobs: 1 },
    { manager: 'other', site: 'd', state: 'running', jobs: 0 },
  ];
  const queue = {
    totals: async () => ({ jobs: 6, states: {} as never, places }),
    candidates: { places: async () => [] } as never,
  };
  const census = new Census(queue, 'me');
  expect(census.watched).toBe(0);
  await census.count();
  expect(census.watched).toBe(3);
  expect([...census.workLoopsWanted().keys()]).toEqual(['a', 'b']);
});
