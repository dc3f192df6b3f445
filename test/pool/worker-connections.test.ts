import { describe, expect, it } from 'vitest';
import { asError } from '../../src/errors.ts';
import { Channel, encodeFrame } from '../../src/pool/wire/frames.ts';
import { type FromCentralManager, type FromWorker, readFromCentralManager } from '../../src/pool/wire/wire.ts';
import { HAS_STAGING_LINKS } from '../../src/pool/wire/staging-link.ts';
import { slotAds } from '../../src/pool/central-manager/slot-ads.ts';
import { come, centralManagerWorkers, TOKEN } from './central-manager-of-workers.ts';
import { pair } from './wire-pair.ts';

const ASKED = { what: 'read', key: 'a.1.0.1', path: 'stdout', offset: 0, bytes: 1 } as const;
const words = (asked: Promise<unknown>) =>
  asked.then(
    () => 'an answer',
    (thrown: unknown) => asError(thrown).message,
  );

describe('a worker of an earlier build', () => {
  it('is not asked to connect for large files', async () => {
    const { workers, centralManager } = centralManagerWorkers();
    await come(workers, 'w');
    expect(workers.staging('pilot/w', 'a.1.0.1')).toBeUndefined();
    const worker = centralManager.collector.get('pilot/w');
    if (worker) worker.texts = { ...worker.texts, [HAS_STAGING_LINKS]: 'true' };
    expect(workers.staging('pilot/w', 'a.1.0.1')).toBeDefined();
  });
});

describe('a worker that comes back before its old connection is known to be dead', () => {
  it('leaves no question of the old one open', async () => {
    const { workers } = centralManagerWorkers();
    await come(workers, 'w');
    const old = workers.askingOf('pilot/w');
    const asked = words(old?.ask(ASKED) ?? Promise.resolve());
    await come(workers, 'w');
    expect(await asked).toBe('it reconnected by another connection');
    expect(workers.askingOf('pilot/w')).not.toBe(old);
    // A holder of the old connection learns at once that it is closed.
    expect(await words(old?.ask(ASKED) ?? Promise.resolve())).toBe('the connection ended');
  });

  it('is taken for away when nothing is heard of it', async () => {
    const { workers } = centralManagerWorkers();
    const { closed } = await come(workers, 'w');
    const asked = words(workers.askingOf('pilot/w')?.ask(ASKED) ?? Promise.resolve());
    for (let looks = 0; looks < 11; looks++) workers.tick();
    expect(workers.askingOf('pilot/w')).toBeDefined();
    workers.tick();
    expect(workers.askingOf('pilot/w')).toBeUndefined();
    expect(await asked).toBe('it has stopped reporting');
    await closed;
  });

  it('is given nothing more before that, hears that the agent is there, and is given again when a byte comes', async () => {
    const { workers, centralManager } = centralManagerWorkers();
    const { wire, heard } = await come(workers, 'w');
    const offers = () => centralManager.collector.offers().length;
    for (let looks = 0; looks < 3; looks++) workers.tick();
    expect(offers()).toBe(1);
    workers.tick();
    expect(offers()).toBe(0);
    expect(slotAds(centralManager)[0]?.['State']).toBe('"Unknown"');
    await new Promise(setImmediate);
    expect(heard.at(-1)).toEqual({ t: 'pong', n: 0 });
    // The first part of something that takes long to arrive.
    const [frame = Buffer.alloc(0)] = encodeFrame({ t: 'ping', n: 1 } as { t: string });
    for (let at = 0; at < frame.length; at++) {
      wire.write(frame.subarray(at, at + 1));
      await new Promise(setImmediate);
      for (let looks = 0; looks < 3; looks++) workers.tick();
      expect(workers.askingOf('pilot/w')).toBeDefined();
    }
    expect(offers()).toBe(1);
  });
});

it('a worker that is reported dead is disconnected, so that its answers are not waited for', async () => {
  const { workers } = centralManagerWorkers();
  const { closed } = await come(workers, 'w');
  const asked = words(workers.askingOf('pilot/w')?.ask(ASKED) ?? Promise.resolve());
  workers.part('another', 'its pilot is over');
  expect(workers.askingOf('pilot/w')).toBeDefined();
  workers.part(TOKEN.id, 'its pilot is over');
  expect(workers.askingOf('pilot/w')).toBeUndefined();
  expect(await asked).toBe('its pilot is over');
  await closed;
});

it.each([1, 3, 2.5])('a worker that speaks version %s of the protocol is told so', async (version) => {
  const { workers } = centralManagerWorkers();
  const [here, there] = pair();
  const channel = new Channel<FromCentralManager, FromWorker>(here, readFromCentralManager);
  const heard = new Promise<FromCentralManager>((resolve) => channel.open(resolve, () => undefined));
  channel.send({ t: 'hello', version, token: TOKEN.id, instance: 'w', nonce: 'n' });
  workers.accept(there);
  expect(await heard).toEqual({
    t: 'denied',
    message: `it speaks version ${version} of the workers' protocol, and this agent version 2`,
  });
});
