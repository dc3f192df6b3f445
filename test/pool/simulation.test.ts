import { describe, expect, it } from 'vitest';
import { simulate } from '../../bench/pool/simulation.ts';
import { SLOW } from '../slow.ts';

describe.skipIf(!SLOW)(
  'sixty simulated workers that die, at ten sites that close, under an agent that is killed twice',
  () => {
    it('lose no job, double none, and start no attempt twice', async () => {
      const seen = await simulate({ workers: 60, jobs: 300, seconds: 1 });
      expect(seen).toMatchObject({ lost: 0, doubled: 0, startedTwice: 0, agentKilled: 2 });
      expect(seen.deaths + seen.closings).toBeGreaterThan(0);
    }, 300_000);
  },
);
