import type { Duplex } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { proof } from '../../src/pool/wire/auth.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { Link, type LinkOptions } from '../../src/pool/worker/link.ts';
import {
  type FromCentralManager,
  type FromWorker,
  type HeldAttempt,
  readFromWorker,
} from '../../src/pool/wire/wire.ts';
import { until } from '../agent/agent.ts';
import { JUST_TRUE } from './just-true.ts';
import { pair } from './wire-pair.ts';

const TOKEN = { id: 'pilot', secret: 'ab'.repeat(32) };
const START = {
  t: 'start',
  key: 'a.1.0.1',
  claim: 'c',
  kind: 'k',
  size: { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 },
  spec: JUST_TRUE,
  lease: 60,
} as const;

describe("a worker's reverse connection", () => {
  const state = { dials: 0, downs: [] as string[] };
  let link: Link | undefined;
  afterEach(() => {
    link?.end('over');
    Object.assign(state, { dials: 0, downs: [] });
  });

  /** A link to a central manager that handles messages with `hear`; `ping`: seconds between pings. */
  function open(
    hear: (message: FromWorker, centralManager: Channel<FromWorker, FromCentralManager>, wire: Duplex) => void,
    clock?: () => number,
    more: Partial<LinkOptions> = {},
    ping = 0.02,
  ): Link {
    const made = new Link({
      ...(clock && { clock }),
      token: TOKEN,
      instance: 'w',
      boot: 'b',
      size: () => ({ cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 }),
      dial: () => {
        state.dials += 1;
        const [here, there] = pair();
        const centralManager = new Channel<FromWorker, FromCentralManager>(there, readFromWorker);
        centralManager.open(
          (message) => {
            if (message.t === 'hello')
              centralManager.send({
                t: 'challenge',
                nonce: 'n',
                proof: proof(TOKEN, 'central-manager', 'n', message.nonce),
              });
            else if (message.t === 'proof')
              centralManager.send({ t: 'welcome', agent: 'a', site: 's', lease: 60, ping });
            else hear(message, centralManager, there);
          },
          () => undefined,
        );
        return Promise.resolve(here);
      },
      ad: () => ({}),
      held: () => [],
      take: () => undefined,
      onUp: () => undefined,
      onDown: (message) => state.downs.push(message),
      onDenied: () => undefined,
      ...more,
    });
    link = made;
    made.open();
    return made;
  }

  it('is not taken by a worker that ended meanwhile', async () => {
    const [here, there] = pair();
    const said: unknown[] = [];
    there.on('data', (data: Buffer) => said.push(data));
    let dialled: (wire: Duplex) => void = () => undefined;
    const ended = new Link({
      token: TOKEN,
      instance: 'w',
      boot: 'b',
      size: () => ({ cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 }),
      dial: () => new Promise((resolve) => (dialled = resolve)),
      ad: () => ({}),
      held: () => [],
      take: () => undefined,
      onUp: () => undefined,
      onDown: () => undefined,
      onDenied: () => undefined,
    });
    ended.open();
    ended.end('over');
    dialled(here);
    await new Promise(setImmediate);
    expect([here.destroyed, said]).toEqual([true, []]);
  });

  it('is given up when not one byte comes on it', async () => {
    open(() => undefined);
    await until('another try', () => state.dials > 1 || undefined);
    expect(state.downs).toEqual(['the agent does not answer']);
  });

  it('holds while bytes come, though nothing whole is among them; the lease goes by answers alone', async () => {
    let pieces = 0;
    // A megabyte that takes long to arrive.
    const head = Buffer.from([0, 16, 0, 0, 0, 0, 0, 0]);
    const made = open((_, __, wire) => wire.write(pieces++ === 0 ? head : Buffer.from(' ')));
    await until('it to be up', () => made.up || undefined);
    await until('many pings', () => pieces > 12 || undefined);
    expect(state).toEqual({ dials: 1, downs: [] });
    expect(made.silence).toBeGreaterThan(0.1);
  });

  it('was silent for as long as its machine slept, though the answer to an earlier ping is read only then', async () => {
    let slept = 0;
    let pongs: (() => void)[] = [];
    const made = open(
      (message, centralManager) => {
        if (message.t === 'ping') pongs.push(() => centralManager.send({ t: 'pong', n: message.n }));
      },
      () => performance.now() + slept,
    );
    await until('a ping', () => pongs.length > 0 || undefined);
    const late = pongs;
    slept = 8 * 3_600_000;
    for (const answer of late) answer();
    await new Promise((resume) => setTimeout(resume, 5));
    expect(made.silence).toBeGreaterThan(8 * 3600 - 1);
    pongs = [];
    await until('a ping after it', () => pongs.length > 0 || undefined);
    for (const answer of pongs) answer();
    await until('its answer', () => made.silence < 60 || undefined);
  });

  it('to a central manager of this machine is looked for all the time: its first job does not wait for it', async () => {
    let tries = 0;
    link = new Link({
      token: TOKEN,
      instance: 'w',
      boot: 'b',
      size: () => ({ cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 }),
      longestRetryMs: 50,
      dial: () => {
        tries += 1;
        return Promise.reject(new Error('there is none'));
      },
      ad: () => ({}),
      held: () => [],
      take: () => undefined,
      onUp: () => undefined,
      onDown: () => undefined,
      onDenied: () => undefined,
    });
    link.open();
    const begun = performance.now();
    await until('many tries', () => tries > 12 || undefined);
    // If waits doubled, this would take minutes.
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  it('is not given up for the time in which this process did not run', async () => {
    const made = open((message, centralManager) => {
      if (message.t === 'ping') centralManager.send({ t: 'pong', n: message.n });
    });
    await until('it to be up', () => made.up || undefined);
    for (const end = performance.now() + 400; performance.now() < end; );
    await new Promise((resume) => setTimeout(resume, 60));
    expect(state).toEqual({ dials: 1, downs: [] });
    expect(made.silence).toBeLessThan(0.3);
  });

  describe('that may rest while the worker holds nothing', () => {
    const EVERY = 0.5;

    /** Answers each ping, with a rest of half a minute, until told not to; a job is held as soon as it is started. */
    function resting(longestRest: number) {
      let pings = 0;
      let held: HeldAttempt[] = [];
      let start: (() => void) | undefined;
      const answers = { given: true };
      const made = open(
        (message, centralManager) => {
          if (message.t !== 'ping') return;
          pings += 1;
          start = () => centralManager.send(START);
          if (answers.given) centralManager.send({ t: 'pong', n: message.n, rest: 30 });
        },
        undefined,
        {
          longestRest,
          held: () => held,
          take: ({ t }) => {
            if (t === 'start') held = [{ key: START.key, is: 'staging' }];
          },
        },
        EVERY,
      );
      return { made, answers, pings: () => pings, start: () => start?.() };
    }

    it('is asked for rarely, but at the start of a job at once and then as ever', async () => {
      const { made, answers, pings, start } = resting(60);
      await until('the rest', () => made.rest === 30 || undefined);
      await until('some of it', () => made.silence > 1.1 * EVERY || undefined);
      expect([pings(), made.isUnsure]).toEqual([1, false]);
      answers.given = false;
      start();
      await until('the start', () => made.rest === 0 || undefined);
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      expect(pings()).toBe(2);
      // Nobody asked during the rest, so its length says nothing about a lease.
      expect([made.rest, made.isUnsure]).toEqual([0, true]);
      answers.given = true;
      await until('an answer', () => !made.isUnsure || undefined);
      expect(made.silence).toBeLessThan(EVERY);
      await until('pings as ever', () => pings() > 4 || undefined);
      expect(state).toEqual({ dials: 1, downs: [] });
    });

    it('does not rest for longer than the worker can wait', async () => {
      const { made } = resting(3);
      await until('the rest', () => made.rest === 3 || undefined);
    });
  });
});
