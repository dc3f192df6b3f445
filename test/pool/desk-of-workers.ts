import type { Duplex } from 'node:stream';
import { isProof, nonce, proof } from '../../src/pool/auth.ts';
import { Desk } from '../../src/pool/desk.ts';
import { DeskWorkers } from '../../src/pool/desk-workers.ts';
import { Channel } from '../../src/pool/frames.ts';
import { type FromDesk, type FromWorker, readFromDesk, WIRE_VERSION } from '../../src/pool/wire.ts';
import { pair } from './wire-pair.ts';

export const TOKEN = { id: 'pilot', secret: 'ab'.repeat(32), site: 'cluster', local: false };
const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1000, gpus: 0 };

/** The desk's ends of workers' connections, over a desk without a disk. */
export function deskWorkers(): { readonly workers: DeskWorkers; readonly desk: Desk; readonly logged: string[] } {
  const logged: string[] = [];
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
    tokens: { find: (id) => ({ ...TOKEN, id }), bind: () => true },
    specOf: () => undefined,
    proxies: { sign: () => '' },
    lease: 2400,
    onChunk: () => undefined,
    shells: { hear: () => undefined, away: () => undefined },
    log: (words, facts) => logged.push(`${words} ${JSON.stringify(facts)}`),
  });
  return { workers, desk, logged };
}

interface Come {
  readonly closed: Promise<string>;
  readonly wire: Duplex;
  readonly channel: Channel<FromDesk, FromWorker>;
  readonly heard: FromDesk[];
}

/** A worker that comes by a connection of its own and then answers nothing; resolves with its welcome. */
export async function come(workers: DeskWorkers, instance: string, id = TOKEN.id): Promise<Come> {
  const token = { ...TOKEN, id };
  const heard: FromDesk[] = [];
  const [here, there] = pair();
  const channel = new Channel<FromDesk, FromWorker>(here, readFromDesk);
  const mine = nonce();
  let onClosed: (words: string) => void = () => undefined;
  const closed = new Promise<string>((resolve) => {
    onClosed = resolve;
  });
  return new Promise((resolve) => {
    channel.open((message) => {
      heard.push(message);
      if (message.t === 'welcome') resolve({ closed, wire: here, channel, heard });
      if (message.t !== 'challenge') return;
      if (!isProof(message.proof, proof(token, 'desk', message.nonce, mine))) throw new Error('not the desk');
      const answer = proof(token, 'worker', message.nonce, mine);
      channel.send({ t: 'proof', proof: answer, ad: {}, size: SIZE, boot: 'b', attempts: [] });
    }, onClosed);
    channel.send({ t: 'hello', version: WIRE_VERSION, token: id, instance, nonce: mine });
    workers.accept(there);
  });
}
