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
    agree({});
  });
  const agree = (terms: Partial<Agreement>) =>
    gateway.follow(new Map([['p', { agreement: { ...AGREEMENT, ...terms }, key: KEY }]]), new Set(['p']));
  afterEach(() => {
    gateway.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The partner's end of a link. */
  function connected(version = 1) {
    const [here, there] = pair();
    gateway.welcome(KEY.id, here);
    const heard: FlockMessage[] = [];
    const channel = new Channel<FlockMessage, FlockMessage>(there, readFlockMessage, FRAME_LIMITS);
    channel.open(
      (message) => void heard.push(message),
      () => undefined,
    );
    channel.send({ t: 'hello', version, agent: 'theirs', name: 'us' });
    return { channel, heard, refused: () => heard.filter(({ t }) => t === 'refused').length };
  }

  const size = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
  const ask = (channel: Channel<FlockMessage, FlockMessage>, first: number, jobs: number) => {
    for (let n = first; n < first + jobs; n++) {
      const job = { user: 'u', ad: {}, size, lease: 600, spec: JUST_TRUE };
      channel.send({ t: 'prepare', key: `theirs.${n}.0.1`, round: 1, ...job });
    }
  };

  const hop = (name: string) => ({ agent: name, name });
  it.each([
    ['that comes back to us', {}, { path: ['home', 'ours'] }, 'path'],
    ['that comes back to the partner', {}, { path: ['theirs'] }, 'path'],
    ['that would come back to its home', { forward: ['c'] }, { path: ['home'], to: ['c', 'home'] }, 'path'],
    ['that the agreement does not let it pass on', { forwarded: false }, { path: ['home'] }, 'forwarded'],
    ['that we are not to pass on', {}, { to: ['c'] }, 'forward'],
    ['that we are to pass on to nobody we know', { forward: ['c'] }, { to: ['c'] }, 'forward'],
    ['that has come by the way that is agreed on', {}, { path: ['home'] }, 'idle'],
  ] as const)(
    'answers a job %s',
    async (_, terms: Partial<Agreement>, way: { path?: readonly string[]; to?: readonly string[] }, clause) => {
      agree({ forwarded: true, ...terms });
      const { channel, heard } = connected(4);
      const { path = [], to = [] } = way;
      const hops = {
        ...(path.length > 0 ? { path: path.map(hop) } : {}),
        ...(to.length > 0 ? { to: to.map(hop) } : {}),
      };
      const job = { user: 'u', ad: {}, size, lease: 600, spec: JUST_TRUE };
      channel.send({ t: 'prepare', key: 'home.1.0.1', round: 1, ...job, ...hops });
      const refusal = await until('the refusal', () => heard.find(({ t }) => t === 'refused'));
      expect(refusal).toMatchObject({ clause });
    },
  );

  it('uses no machines of other pools beyond what the agreement says, and none that are offered in a circle', async () => {
    const kind = (...path: string[]) => ({ ad: {}, machines: 1, each: size, all: size, path: path.map(hop) });
    agree({ hops: 2 });
    const { channel } = connected(4);
    channel.send({
      t: 'list',
      kinds: [kind('c'), kind('c', 'ours'), kind('c', 'd'), kind('c', 'd', 'e'), kind('theirs')],
    });
    const beyond = () => gateway.status()[0]?.beyond?.map(({ pool }) => pool) ?? [];
    await until('the list', () => beyond().length > 0 || undefined);
    expect(beyond()).toEqual(['c via p', 'd via c via p']);
    agree({ hops: 1 });
    expect(beyond()).toEqual(['c via p']);
  });

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
