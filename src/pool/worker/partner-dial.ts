import type { Duplex } from 'node:stream';
import { reach } from '../../reverse-connection/reach.ts';
import { greetHome } from '../../reverse-connection/secure.ts';
import type { DirectHome } from '../wire/direct-wire.ts';

/** How long a partner's gateway has to answer, in milliseconds, */
const PATIENCE_MS = 5000;
/** and how long one that did not is left alone. */
const REST_MS = 600_000;

/** Connects a worker to partners' gateways. */
export class PartnerDial {
  /** Gateways that could not be reached, and until when they are left alone, by the monotonic clock in milliseconds. */
  readonly #resting = new Map<string, number>();

  /** Rejects if it cannot be reached, or does not know the secret. */
  async dial({ host, port, name, secret }: DirectHome): Promise<Duplex> {
    const address = `${host} ${port}`;
    if ((this.#resting.get(address) ?? 0) > performance.now()) throw new Error(`${address} was not reachable lately`);
    const raw = await reach({ host, port }, PATIENCE_MS).catch((thrown: unknown) => {
      this.#resting.set(address, performance.now() + REST_MS);
      throw thrown;
    });
    this.#resting.delete(address);
    return greetHome(raw, { worker: name, key: Buffer.from(secret, 'hex'), patienceMs: PATIENCE_MS });
  }
}
