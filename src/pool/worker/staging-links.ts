import type { FileHandle } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import type { AttemptKey } from '../../job/ids.ts';
import { dialDirect, type DirectKey, GREETING, greetDirect } from '../../reverse-connection/direct.ts';
import { type Way, waysNow } from '../../reverse-connection/home.ts';
import { reach } from '../../reverse-connection/reach.ts';
import { greetHome } from '../../reverse-connection/secure.ts';
import type { Blob } from '../../site/contract.ts';
import { type Opened, StagingLink, type Wanted } from '../wire/staging-link.ts';
import type { WorkerConfig } from '../wire/worker-config.ts';
import type { WireAsk } from '../wire/wire.ts';
import { openForReading } from './results.ts';
import type { Run } from './run.ts';

/** What is needed of an attempt that ended. */
type LeftFiles = { readonly dir: Pick<Run['dir'], 'work' | 'uid' | 'stream'> };
type Asked = Extract<WireAsk, { what: 'staging' }>;
/** How long the central manager has to answer on each way, in milliseconds. */
const PATIENCE_MS = 5000;

/** A worker's connections for the large files of its attempts, which the central manager asks for. */
export class WorkerStagingLinks {
  readonly #config: DialConfig;
  readonly #find: (key: AttemptKey) => LeftFiles | undefined;
  readonly #inputs = new Map<AttemptKey, StagingLink>();
  readonly #open = new Set<StagingLink>();

  constructor(config: DialConfig, find: (key: AttemptKey) => LeftFiles | undefined) {
    this.#config = config;
    this.#find = find;
  }

  /** Rejects if no way works. */
  async open({ key, for: purpose, name, secret }: Asked): Promise<void> {
    const stream = await dialStaging(this.#config, { name, secret });
    const link = new StagingLink(stream);
    this.#open.add(link);
    stream.once('close', () => {
      this.#open.delete(link);
      if (this.#inputs.get(key) === link) this.#inputs.delete(key);
    });
    if (purpose === 'results') return void link.answer((one) => openResult(this.#find(key)?.dir, one));
    this.#inputs.get(key)?.end();
    this.#inputs.set(key, link);
  }

  /** An attempt's input from an offset on; `undefined` if it has no connection for it now. */
  input(key: AttemptKey, { sha256, bytes }: Blob, from: number): AsyncIterable<Buffer> | undefined {
    return this.#inputs.get(key)?.ask({ what: 'input', sha256, from, to: bytes });
  }

  /** The attempt has what it needs. */
  endInputs(key: AttemptKey): void {
    this.#inputs.get(key)?.end();
  }

  close(): void {
    for (const link of this.#open) link.end();
  }
}

async function openResult(dir: LeftFiles['dir'] | undefined, one: Wanted): Promise<Opened> {
  if (!dir || one.what !== 'result') throw new Error('its files are not there any more');
  const file: FileHandle = await openForReading(dir, one.path);
  return {
    read: async (memory, at) => (await file.read(memory, 0, memory.length, at)).bytesRead,
    close: () => file.close(),
  };
}

type DialConfig = Pick<WorkerConfig, 'socket' | 'token' | 'secret' | 'ways' | 'waysFile'>;

/** By the worker's own ways home, but for mailboxes, in which bytes are not faster. */
async function dialStaging(config: DialConfig, key: DirectKey): Promise<Duplex> {
  const { token, secret, ways = [], waysFile, socket } = config;
  if (socket !== undefined) return greetDirect(await reach({ path: socket }, PATIENCE_MS), key, GREETING.staging);
  const home = { worker: token, key: secret, ways: [...ways], ...(waysFile === undefined ? {} : { waysFile }) };
  let last: unknown;
  for (const way of waysNow(home)) {
    if (way.kind === 'mailbox') continue;
    try {
      return await dialWay(way, home, key);
    } catch (thrown) {
      last = thrown;
    }
  }
  throw last ?? new Error('there is no way for large files');
}

async function dialWay(
  way: Exclude<Way, { kind: 'mailbox' }>,
  { worker, key: secret }: { readonly worker: string; readonly key: string },
  key: DirectKey,
): Promise<Duplex> {
  if (way.kind === 'socket' || way.own !== true) return dialDirect(way, key, GREETING.staging);
  // At the agent's own port, the token comes first, as with every connection.
  const raw = await reach({ host: way.host, port: way.port }, PATIENCE_MS);
  const link = await greetHome(raw, { worker, key: Buffer.from(secret, 'hex'), patienceMs: PATIENCE_MS });
  return greetDirect(link, key, GREETING.staging);
}
