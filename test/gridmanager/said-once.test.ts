import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AttemptKey, formatAttemptKey } from '../../src/job/ids.ts';
import { isEnd, type State, STATES } from '../../src/job/life.ts';
import type { Queue } from '../../src/queue/api.ts';
import { seeded } from '../seeded.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';
import { World } from './protocol-world.ts';
import { CLEAR } from './simulated-site.ts';

const UNSTARTED: ReadonlySet<State> = new Set(['idle', 'preparing', 'prepared', 'committed']);
const UNENDED: ReadonlySet<State> = new Set(STATES.filter((state) => !isEnd(state)));

/**
 * A site reports each change once: a report that arrives at a bad moment is kept, or the job would stay committed for
 * ever.
 */
describe('what a site says of a job', () => {
  let redis: TestRedis;
  let queue: Queue;
  let world: World;

  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(() => redis.stop());
  beforeEach(() => {
    world = new World(queue, seeded(5), CLEAR, ['other']);
  });
  afterEach(() => world.end());

  const heard = async (): Promise<void> => {
    // When the next poll starts, the one after this has been answered.
    for (let polls = 0; polls < 3; polls++)
      await new Promise<void>((resolve) => {
        world.site.met = (call) => call === 'poll' && resolve();
      });
    world.site.met = undefined;
  };

  it.each(['ended', 'running'] as const)(
    'that it took for lost and that is on its way again: it is %s all the same',
    async (stage) => {
      world.site.full = true;
      // The other one keeps the site watched.
      const [id] = await world.submit(2);
      if (!id) throw new Error('no job');
      const key: AttemptKey = formatAttemptKey({ agent: queue.agent, ...id, attempt: 1 });
      await world.until((jobs) => jobs.every(({ state }) => state === 'committed'));
      let release = (): void => undefined;
      world.site.slow = new Promise((resolve) => (release = resolve));
      world.site.says(key, 'lost');
      await world.until(([job]) => job?.state === 'preparing');
      world.site.says(key, stage);
      await heard();
      world.site.slow = undefined;
      release();
      // A job running at a simulated site may end at any moment.
      const open = stage === 'ended' ? UNENDED : UNSTARTED;
      await world.until(([job]) => job !== undefined && !open.has(job.state));
      if (stage === 'running') world.site.says(key, 'ended');
      world.site.full = false;
      await world.finish();
      expect(world.managers).toBe(1);
    },
    30_000,
  );
});
