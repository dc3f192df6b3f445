import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { asError } from '../../src/errors.ts';
import { isProof, nonce, proof } from '../../src/pool/auth.ts';
import { Desk } from '../../src/pool/desk.ts';
import { DeskWorkers } from '../../src/pool/desk-workers.ts';
import { Channel, encodeFrame } from '../../src/pool/frames.ts';
import { slotAds } from '../../src/pool/slot-ads.ts';
import { type FromDesk, type FromWorker, WIRE_VERSION } from '../../src/pool/wire.ts';
import { pair } from './wire-pair.ts';

const TOKEN = { id: 'pilot', secret: 'ab'.repeat(32), site: 'cluster', local: false };
const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1000, gpus: 0 };

function deskWorkers(): DeskWorkers & { readonly desk: Desk } {
  const journal = { add: () => undefined, whenSaved: (call: () => void) => call() };
  const desk = new Desk(
    {
      journal,
      toWorker: () => undefined,
      toClient: () => undefined,
      now: () => 0,
      clock: () => 0,
      log: () => undefined,
    },
    { attempts: new Map(), grants: new Map(), standings: [] },
  );
  const workers = new DeskWorkers({
    agent: 'a',
    desk,
    findToken: (id) => (id === TOKEN.id ? TOKEN : undefined),
    specOf: () => undefined,
    proxies: { sign: () => '' },
    lease: 2400,
    onChunk: () => undefined,
    shells: { hear: () => undefined, away: () => undefined },
    log: () => undefined,
  });
  return Object.assign(workers, { desk });
}

/** A worker that comes by a connection of its own and then answers nothing; resolves with its welcome. */
async function come(
  workers: DeskWorkers,
  instance: string,
): Promise<{ readonly closed: Promise<string>; readonly wire: Duplex; readonly heard: FromDesk[] }> {
  const heard: FromDesk[] = [];
  const [here, there] = pair();
  const channel = new Channel<FromDesk, FromWorker>(here);
  const mine = nonce();
  let onClosed: (words: string) => void = () => undefined;
  const closed = new Promise<string>((resolve) => {
    onClosed = resolve;
  });
  return new Promise((resolve) => {
    channel.open((message) => {
      heard.push(message);
      if (message.t === 'welcome') resolve({ closed, wire: here, heard });
      if (message.t !== 'challenge') return;
      expect(isProof(message.proof, proof(TOKEN, 'desk', message.nonce, mine))).toBe(true);
      const answer = proof(TOKEN, 'worker', message.nonce, mine);
      channel.send({ t: 'proof', proof: answer, ad: {}, size: SIZE, boot: 'b', attempts: [] });
    }, onClosed);
    channel.send({ t: 'hello', version: WIRE_VERSION, token: TOKEN.id, instance, nonce: mine });
    workers.accept(there);
  });
}

const ASKED = { what: 'read', key: 'a.1.0.1', path: 'stdout', offset: 0, bytes: 1 } as const;
const words = (asked: Promise<unknown>) =>
  asked.then(
    () => 'an answer',
    (thrown: unknown) => asError(thrown).message,
  );

describe('a worker that comes back before its old connection is known to be dead', () => {
  it('leaves no question of the old one open', async () => {
    const workers = deskWorkers();
    await come(workers, 'w');
    const old = workers.askingOf('w');
    const asked = words(old?.ask(ASKED) ?? Promise.resolve());
    await come(workers, 'w');
    expect(await asked).toBe('it came back by another connection');
    expect(workers.askingOf('w')).not.toBe(old);
    // Whoever still holds the old one hears at once that there is no connection.
    expect(await words(old?.ask(ASKED) ?? Promise.resolve())).toBe('the connection ended');
  });

  it('is taken for away when nothing is heard of it', async () => {
    const workers = deskWorkers();
    const { closed } = await come(workers, 'w');
    const asked = words(workers.askingOf('w')?.ask(ASKED) ?? Promise.resolve());
    for (let looks = 0; looks < 11; looks++) workers.tick();
    expect(workers.askingOf('w')).toBeDefined();
    workers.tick();
    expect(workers.askingOf('w')).toBeUndefined();
    expect(await asked).toBe('it does not say anything any more');
    await closed;
  });

  it('is given nothing more before that, hears that the agent is there, and is given again when a byte comes', async () => {
    const workers = deskWorkers();
    const { wire, heard } = await come(workers, 'w');
    const offers = () => workers.desk.collector.offers().length;
    for (let looks = 0; looks < 3; looks++) workers.tick();
    expect(offers()).toBe(1);
    workers.tick();
    expect(offers()).toBe(0);
    expect(slotAds(workers.desk)[0]?.['State']).toBe('"Unknown"');
    await new Promise(setImmediate);
    expect(heard.at(-1)).toEqual({ t: 'pong', n: 0 });
    // The beginning of something that is long on its way.
    const [frame = Buffer.alloc(0)] = encodeFrame({ t: 'ping', n: 1 } as { t: string });
    for (let at = 0; at < frame.length; at++) {
      wire.write(frame.subarray(at, at + 1));
      await new Promise(setImmediate);
      for (let looks = 0; looks < 3; looks++) workers.tick();
      expect(workers.askingOf('w')).toBeDefined();
    }
    expect(offers()).toBe(1);
  });
});
