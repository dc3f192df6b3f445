import { StagingLinks } from '../../src/pool/central-manager/staging-links.ts';
import { NO_SHELLS } from './no-shells.ts';
import type { Duplex } from 'node:stream';
import { isProof, nonce, proof } from '../../src/pool/wire/auth.ts';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import { CentralManagerWorkers } from '../../src/pool/central-manager/worker-connections.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import {
  type FromCentralManager,
  type FromWorker,
  readFromCentralManager,
  WIRE_VERSION,
} from '../../src/pool/wire/wire.ts';
import { pair } from './wire-pair.ts';

export const TOKEN = { id: 'pilot', secret: 'ab'.repeat(32), site: 'cluster', local: false };
const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1000, gpus: 0 };

/** The central manager's ends of workers' connections, over a central manager without a disk. */
export function centralManagerWorkers(): {
  readonly workers: CentralManagerWorkers;
  readonly centralManager: CentralManager;
  readonly logged: string[];
} {
  const logged: string[] = [];
  const journal = { add: () => undefined, whenSaved: (call: () => void) => call() };
  const centralManager = new CentralManager(
    {
      journal,
      toWorker: () => undefined,
      toClient: () => undefined,
      now: () => 0,
      clock: () => 0,
      log: () => undefined,
    },
    { attempts: new Map(), grants: new Map(), userPriorities: [] },
  );
  const workers = new CentralManagerWorkers({
    agent: 'a',
    centralManager,
    tokens: { find: (id) => ({ ...TOKEN, id }), bind: () => true },
    specOf: () => undefined,
    proxies: { sign: () => '' },
    staging: new StagingLinks(),
    lease: 2400,
    onHome: async () => ({ result: -1 }),
    onChunk: () => undefined,
    onFiles: () => undefined,
    shells: NO_SHELLS,
    log: (message, facts) => logged.push(`${message} ${JSON.stringify(facts)}`),
  });
  return { workers, centralManager, logged };
}

interface Come {
  readonly closed: Promise<string>;
  readonly wire: Duplex;
  readonly channel: Channel<FromCentralManager, FromWorker>;
  readonly heard: FromCentralManager[];
}

/** A worker that connects on its own connection and then answers nothing; resolves with its welcome. */
export async function come(workers: CentralManagerWorkers, instance: string, id = TOKEN.id): Promise<Come> {
  const token = { ...TOKEN, id };
  const heard: FromCentralManager[] = [];
  const [here, there] = pair();
  const channel = new Channel<FromCentralManager, FromWorker>(here, readFromCentralManager);
  const mine = nonce();
  let onClosed: (message: string) => void = () => undefined;
  const closed = new Promise<string>((resolve) => {
    onClosed = resolve;
  });
  return new Promise((resolve) => {
    channel.open((message) => {
      heard.push(message);
      if (message.t === 'welcome') resolve({ closed, wire: here, channel, heard });
      if (message.t !== 'challenge') return;
      if (!isProof(message.proof, proof(token, 'central-manager', message.nonce, mine)))
        throw new Error('not the central manager');
      const answer = proof(token, 'worker', message.nonce, mine);
      channel.send({ t: 'proof', proof: answer, ad: {}, size: SIZE, boot: 'b', attempts: [] });
    }, onClosed);
    channel.send({ t: 'hello', version: WIRE_VERSION, token: id, instance, nonce: mine });
    workers.accept(there);
  });
}
