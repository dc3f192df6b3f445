import { randomBytes } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { asError, GryphusError } from '../../errors.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { acceptDirect, GREETING, isDirect } from '../../reverse-connection/direct.ts';
import type { Blob } from '../../site/contract.ts';
import { type Deferred, deferred } from '../../util/deferred.ts';
import type { Asking } from '../wire/asking.ts';
import { blobOf } from '../wire/run-blobs.ts';
import { type Opened, StagingLink, type Wanted } from '../wire/staging-link.ts';
import type { RunSpec } from '../wire/wire.ts';

/** How long a worker may take to connect, in milliseconds, */
const CONNECT_MS = 5000;
/** and how long one that could not is not asked again. */
const REST_MS = 600_000;
/** How long a connection may take to say its first word: mailboxes are slow; milliseconds. */
const PATIENCE_MS = 120_000;

/** Connections of workers for the large files of attempts, each by a key that is made for it. */
export class StagingLinks {
  readonly #awaited = new Map<string, { readonly secret: Buffer; readonly came: Deferred<StagingLink> }>();
  readonly #open = new Set<StagingLink>();
  /** The workers and attempts whose inputs were to be pulled so. */
  readonly #inputs = new Map<string, Promise<void>>();
  /** Workers that could not connect, and until when they are left alone, by the monotonic clock. */
  readonly #resting = new Map<string, number>();

  /**
   * Has a worker connect for an attempt's inputs or results. Rejects if it cannot; whoever gets the connection ends it. `worker`: its
   * instance.
   */
  async open(worker: string, asking: Asking, key: AttemptKey, purpose: 'inputs' | 'results'): Promise<StagingLink> {
    if ((this.#resting.get(worker) ?? 0) > performance.now()) throw new Error('it could not connect lately');
    this.#resting.delete(worker);
    const [name, secret] = [randomBytes(12).toString('hex'), randomBytes(32)];
    const came = deferred<StagingLink>();
    this.#awaited.set(name, { secret, came });
    const late = setTimeout(() => came.reject(new Error('it did not connect in time')), CONNECT_MS);
    const said = asking.ask({ what: 'staging', key, for: purpose, name, secret: secret.toString('hex') });
    said.catch((thrown: unknown) => came.reject(asError(thrown)));
    try {
      const link = await came.promise;
      // Only then is it there at the worker, too.
      await said;
      return link;
    } catch (thrown) {
      void came.promise.then(
        (link) => link.end(),
        () => undefined,
      );
      // If its other connection ended, nothing is known.
      if (!(thrown instanceof GryphusError && thrown.code === 'site-unreachable'))
        this.#resting.set(worker, performance.now() + REST_MS);
      throw thrown;
    } finally {
      clearTimeout(late);
      this.#awaited.delete(name);
    }
  }

  /** Whether a connection is one that a worker was asked for; then it is taken. One that says nothing is closed. */
  async take(raw: Duplex): Promise<boolean> {
    raw.on('error', () => undefined);
    const late = setTimeout(() => raw.destroy(), PATIENCE_MS);
    const ours = await isDirect(raw, GREETING.staging);
    clearTimeout(late);
    if (!ours) return raw.destroyed;
    try {
      const keyOf = (name: string) => this.#awaited.get(name)?.secret;
      const { link: stream, worker: name } = await acceptDirect(
        raw,
        { keyOf, patienceMs: CONNECT_MS },
        GREETING.staging,
      );
      const awaited = this.#awaited.get(name);
      // A key is for one connection.
      this.#awaited.delete(name);
      const link = new StagingLink(stream);
      this.#open.add(link);
      stream.once('close', () => this.#open.delete(link));
      if (awaited) awaited.came.resolve(link);
      else link.end();
    } catch {
      // A stranger, or one that comes too late.
    }
    return true;
  }

  /**
   * Has a worker connect for an attempt's inputs, once, and answers it there. Resolves when it has connected or cannot: what it asks by its
   * other connection is answered as well. `granted`: the attempt's spec, while it is this worker's.
   */
  inputs(worker: string, asking: Asking, key: AttemptKey, granted: () => RunSpec | undefined): Promise<void> {
    const which = `${worker} ${key}`;
    const known = this.#inputs.get(which);
    if (known) return known;
    const opening = this.open(worker, asking, key, 'inputs').then(
      (link) => void link.answer((one) => openInput(one, granted)),
      () => undefined,
    );
    this.#inputs.set(which, opening);
    setTimeout(() => this.#inputs.delete(which), REST_MS).unref();
    return opening;
  }

  close(): void {
    for (const link of this.#open) link.end();
  }
}

async function openInput(one: Wanted, granted: () => RunSpec | undefined): Promise<Opened> {
  const blob = (): Blob | undefined => {
    const spec = granted();
    return spec && one.what === 'input' ? blobOf(spec, one.sha256) : undefined;
  };
  const wanted = blob();
  if (!wanted || one.to > wanted.bytes) throw new Error('that is not an input of its job');
  const file: FileHandle = await open(wanted.path, 'r');
  return {
    read: async (memory, at) => {
      if (!granted()) throw new Error('the job is not its any more');
      return (await file.read(memory, 0, memory.length, at)).bytesRead;
    },
    close: () => file.close(),
  };
}
