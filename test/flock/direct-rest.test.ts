import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { agreementLines } from '../../src/commands/show/flock.ts';
import { DirectRest } from '../../src/flock/direct-rest.ts';
import { DirectEnds, KEY, OTHER } from './direct-ends.ts';

describe('direct connections with a partner', () => {
  let now = 0;
  const rest = () => new DirectRest(() => now);
  /** A connection that fails after so long, in milliseconds. */
  const failing = (took: number) =>
    Promise.resolve().then(() => {
      now += took;
      throw new Error('nothing was received');
    });

  it('that fail at once are tried for each job', async () => {
    const one = rest();
    await expect(one.watch(failing(900))).rejects.toThrow('nothing was received');
    expect([one.mayTry, one.why]).toEqual([true, undefined]);
  });

  it('that take long to fail are left alone for a minute, and then tried once at a time until one works', async () => {
    const one = rest();
    await expect(one.watch(failing(5000))).rejects.toThrow('nothing was received');
    expect([one.mayTry, one.why, one.left]).toEqual([false, 'nothing was received', 60]);
    now += 60_000;
    expect(one.mayTry).toBe(true);
    const trying = one.watch(failing(10));
    expect(one.mayTry).toBe(false);
    await expect(trying).rejects.toThrow('nothing was received');
    expect(one.mayTry).toBe(false);
    now += 60_000;
    await one.watch(Promise.resolve());
    expect([one.mayTry, one.why]).toEqual([true, undefined]);
  });
});

describe('a port that takes connections and does not answer', () => {
  const silent = createServer();
  let ends: DirectEnds;
  beforeEach(async () => {
    ends = await new DirectEnds().open();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => {
    silent.close();
    ends.close();
  });

  it('costs one job its time, not the next', async () => {
    const address = silent.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    ends.tell = (key, to) => ends.worker.open(key, { ...to, port });
    const files = { what: 'files', outputs: 'new' } as const;
    await ends.results.ask({ ...files, key: KEY });
    await ends.results.ask({ ...files, key: OTHER });
    expect([ends.told.length, ends.byGateways]).toEqual([1, ['files', 'files']]);
    expect(ends.results.rest.why).toMatch(/nothing was received for 5 s/);
  });
});

describe('what flock show says', () => {
  it('names why results come by the gateways, and when that is tried again', () => {
    const none = { lent: 0, borrowed: 0 };
    const status = {
      name: 'bio',
      connected: true,
      to: true,
      from: false,
      paused: false,
      borrowed: 0,
      lent: 0,
      offered: 0,
      machines: 0,
      day: none,
      month: none,
      balance: 'none' as const,
      slack: 10,
      jobs: [],
      refusals: [],
      detour: { message: 'nothing was received for 5 s', seconds: 60 },
    };
    const view = { name: 'bio', file: '/f/bio.toml', agreement: undefined, problem: undefined, status };
    const lines = agreementLines(view as unknown as Parameters<typeof agreementLines>[0], 0, 200);
    expect(lines).toContainEqual(
      '  results come by the gateways: a direct connection failed (nothing was received for 5 s); tried again within 60 s',
    );
  });
});
