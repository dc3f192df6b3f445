import { expect, it } from 'vitest';
import { SLOW } from '../../slow.ts';
import { World } from './model-world.ts';

/** A slow run has as many returns as the paper's users have in a month. */
const RETURNS = SLOW ? 1000 : 40;

it.each(['hunter', 'desktop', 'hunter-kill'] as const)(
  'after many returns of owners under %s no job is lost, doubled or was resumed under their hands',
  async (policy) => {
    const world = new World(1988, policy);
    await world.run(RETURNS);
    if (SLOW) process.stderr.write(`${policy}: ${JSON.stringify(world.counted)}\n`);
    expect(world.wrong).toEqual([]);
    const least = RETURNS / 100;
    for (const count of ['workerDeaths', 'managerDeaths', 'done', 'vacated'] as const)
      expect(world.counted[count], count).toBeGreaterThan(least);
  },
  240_000,
);
