import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seeded } from '../seeded.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { daemons } from './everything.ts';

const ROUNDS = 21;
/** From the system, the keyboard, and a terminal that was closed. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/** Longer than a start takes on a busy machine, milliseconds. */
const START_MS = 2000;
const SEED = Number(process.env['GRYPHUS_SEED'] ?? Date.now() % 100_000);

describe.skipIf(!SLOW)('`gryphus up` that is told to end while it starts', () => {
  let agent: TestAgent;
  beforeAll(() => {
    agent = new TestAgent();
  });
  afterAll(() => agent.end());

  it(`leaves nothing, or everything, at ${ROUNDS} instants (GRYPHUS_SEED=${SEED})`, async () => {
    await agent.submit('executable = /bin/true\ntransfer_executable = false\nhold = true\nqueue\n');
    const random = seeded(SEED);
    const left = { nothing: 0, everything: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      await agent.ok('down');
      await until('nothing to run', () => daemons(agent).length === 0 || undefined);
      const up = agent.start(['up']);
      const over = new Promise((resolve) => up.once('close', resolve));
      await sleep((START_MS * (round + random())) / ROUNDS);
      up.kill(SIGNALS[round % SIGNALS.length]);
      await over;
      const kinds = () =>
        daemons(agent).map(({ what }) => /scheduler\/main|redis-server|valkey-server/.exec(what)?.[0]);
      await until(
        'nothing to run, or a Scheduler',
        () => kinds().length === 0 || kinds().includes('scheduler/main') || undefined,
        10_000,
      );
      if (kinds().length === 0) left.nothing += 1;
      else {
        await until('Redis', () => kinds().some((kind) => kind?.endsWith('-server')) || undefined, 10_000);
        await agent.ok('status');
        left.everything += 1;
      }
    }
    expect(JSON.parse(await agent.ok('q', '--json'))).toHaveLength(1);
    expect(left.nothing).toBeGreaterThan(0);
    expect(left.everything).toBeGreaterThan(0);
    process.stderr.write(`${JSON.stringify(left)}\n`);
  }, 400_000);
});
