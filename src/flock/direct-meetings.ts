import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { Address } from '../config/address.ts';
import type { DirectHome } from '../pool/wire/direct-wire.ts';
import { relay } from '../reverse-connection/relay.ts';
import { type Deferred, deferred } from '../util/deferred.ts';

/** How long either side has to connect, in milliseconds. */
const COME_MS = 15_000;
/** Pairs at once: the links with partners need places too. */
const MOST_PAIRS = 64;

/**
 * For a partner that our workers cannot dial, and that dials us: it and the worker both connect to our gateway, which passes on
 * what they say without reading it.
 */
export class DirectMeetings {
  readonly #awaited = new Map<string, { readonly secret: Buffer; readonly come: Deferred<Duplex> }>();
  #pairs = 0;

  /** The secret of whoever connects by this name. */
  keyOf(name: string): Buffer | undefined {
    return this.#awaited.get(name)?.secret;
  }

  /** False if nobody was awaited by this name. */
  welcome(name: string, stream: Duplex): boolean {
    const awaited = this.#awaited.get(name);
    this.#awaited.delete(name);
    this.#awaited.delete(name);
    awaited?.come.resolve(stream);
    return awaited !== undefined;
  }

  /**
   * Resolves when the worker is here, and `guest` can come. `here`: where workers reach our gateway; `bring`: has the worker
   * connect. Rejects if it cannot.
   */
  async open(
    { name, secret }: Pick<DirectHome, 'name' | 'secret'>,
    here: Address,
    bring: (to: DirectHome) => Promise<void>,
  ): Promise<void> {
    if (this.#pairs >= MOST_PAIRS || this.#awaited.has(name)) throw new Error('too many are connecting');
    this.#pairs += 1;
    const own = { name: `meeting.${randomBytes(12).toString('base64url')}`, secret: randomBytes(32).toString('hex') };
    const worker = this.#await(own);
    worker.catch(() => undefined);
    try {
      await bring({ ...here, ...own });
      const stream = await worker;
      stream.once('close', () => (this.#pairs -= 1));
      this.#await({ name, secret }).then(
        (guest) => relay(stream, guest),
        () => stream.destroy(),
      );
    } catch (thrown) {
      this.#pairs -= 1;
      throw thrown;
    } finally {
      this.#awaited.delete(own.name);
    }
  }

  async #await({ name, secret }: Pick<DirectHome, 'name' | 'secret'>): Promise<Duplex> {
    const come = deferred<Duplex>();
    this.#awaited.set(name, { secret: Buffer.from(secret, 'hex'), come });
    const late = setTimeout(() => come.reject(new Error('it did not come')), COME_MS);
    try {
      return await come.promise;
    } finally {
      clearTimeout(late);
      this.#awaited.delete(name);
    }
  }
}
