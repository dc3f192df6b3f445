import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGREEMENT_KEYS, type Agreement } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { type FlockMessage, readFlockMessage } from '../../src/flock/flock-wire.ts';
import { flockPlaces } from '../../src/flock/flock-state.ts';
import { Gateway } from '../../src/flock/gateway.ts';
import { FRAME_LIMITS } from '../../src/pool/wire/direct-wire.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { Tokens } from '../../src/pool/wire/tokens.ts';
import { until } from '../agent/agent.ts';
import { JUST_TRUE } from '../pool/just-true.ts';
import { pair } from '../pool/wire-pair.ts';

const KEY = { id: 'abcdefgh', key: 'ab'.repeat(32) };
const AGREEMENT: Agreement = { ...presets(AGREEMENT_KEYS), name: 'p', keyFile: '/k', from: true, to: true };

describe('a gateway', () => {
  let dir = '';
  let gateway: Gateway;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gateway-'));
    gateway = new Gateway({
      agent: 'ours',
      places: flockPlaces({ stateDir: dir }),
      tokens: new Tokens(dir),
      clientSocket: join(dir, 'none'),
      workerSocket: join(dir, 'none'),
      dial: () => undefined,
      here: () => undefined,
      onBroken: (error) => {
        throw error;
      },
      log: () => undefined,
    });
    gateway.follow(new Map([['p', { agreement: AGREEMENT, key: KEY }]]), new Set(['p']));
  });
  afterEach(() => {
    gateway.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The partner's end of a link. */
  function connected() {
    const [here, there] = pair();
    gateway.welcome(KEY.id, here);
    const heard: FlockMessage[] = [];
    const channel = new Channel<FlockMessage, FlockMessage>(there, readFlockMessage, FRAME_LIMITS);
    channel.open(
      (message) => void heard.push(message),
      () => undefined,
    );
    channel.send({ t: 'hello', version: 1, agent: 'theirs', name: 'us' });
    return { channel, refused: () => heard.filter(({ t }) => t === 'refused').length };
  }

  const size = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
  const ask = (channel: Channel<FlockMessage, FlockMessage>, first: number, jobs: number) => {
    for (let n = first; n < first + jobs; n++) {
      const job = { user: 'u', ad: {}, size, lease: 600, spec: JUST_TRUE };
      channel.send({ t: 'prepare', key: `theirs.${n}.0.1`, round: 1, ...job });
    }
  };

  it('leaves a partner alone that asks for more than 2,000 jobs at once, and 50 a second', async () => {
    const { channel, refused } = connected();
    const begun = performance.now();
    ask(channel, 1, 2000);
    await until('an answer for each', () => refused() === 2000 || undefined);
    expect(gateway.status()).toMatchObject([{ connected: true }]);
    ask(channel, 2001, 2000);
    await until('the link to be cut', () => channel.closed || undefined);
    const seconds = (performance.now() - begun) / 1000;
    expect(refused()).toBeLessThanOrEqual(2000 + 50 * seconds);
    expect(gateway.status()).toMatchObject([
      { connected: false, closed: { clause: 'benched', message: expect.stringMatching(/^it asks for too many jobs/) } },
    ]);
    expect(gateway.keyOf(KEY.id)).toBeUndefined();
  });
});
