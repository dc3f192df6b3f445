import type { Duplex } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { proof } from '../../src/pool/wire/auth.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { Link } from '../../src/pool/worker/link.ts';
import { type FromCentralManager, type FromWorker, readFromWorker } from '../../src/pool/wire/wire.ts';
import { until } from '../agent/agent.ts';
import { pair } from './wire-pair.ts';

const TOKEN = { id: 'pilot', secret: 'ab'.repeat(32) };

describe("a worker's reverse connection", () => {
  const state = { dials: 0, downs: [] as string[] };
  let link: Link | undefined;
  afterEach(() => {
    link?.end('over');
    Object.assign(state, { dials: 0, downs: [] });
  });

  /** A link to a central manager that handles messages with `hear`; pings every 20 ms. */
  function open(
    hear: (message: FromWorker, centralManager: Channel<FromWorker, FromCentralManager>, wire: Duplex) => void,
    clock?: () => number,
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
              centralManager.send({ t: 'welcome', agent: 'a', site: 's', lease: 60, ping: 0.02 });
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
});
