import { GryphusError } from '../../errors.ts';
import type { HomeAnswer, HomeRequest } from '../../site/chirp.ts';
import { type Deferred, deferred } from '../../util/deferred.ts';
import type { FromClient, ToClient } from '../wire/client-wire.ts';
import type { Channel } from '../wire/frames.ts';
import type { Attempt } from './attempts.ts';

type Client = Channel<FromClient, ToClient>;

/** Passes requests of running jobs to the clients that answer for them, and the answers back. */
export class HomeRequests {
  readonly #open = new Map<number, { readonly client: Client; readonly wait: Deferred<HomeAnswer> }>();
  #last = 0;

  /** Rejects with 'site-unreachable' if the client goes away first: the worker then sends the request again. */
  pass(client: Client | undefined, { key }: Attempt, request: HomeRequest, bytes: Buffer): Promise<HomeAnswer> {
    const wait = deferred<HomeAnswer>();
    const call = ++this.#last;
    if (!client || client.closed) wait.reject(new GryphusError('site-unreachable', 'its GridManager is not connected'));
    else {
      this.#open.set(call, { client, wait });
      client.send({ t: 'home', call, key, request }, bytes);
    }
    return wait.promise;
  }

  hear(client: Client, { call, result }: Extract<FromClient, { t: 'home-answer' }>, bytes: Buffer): void {
    const open = this.#open.get(call);
    if (open?.client !== client) return;
    this.#open.delete(call);
    open.wait.resolve({ result, bytes });
  }

  leave(client: Client): void {
    for (const [call, open] of this.#open) {
      if (open.client !== client) continue;
      this.#open.delete(call);
      open.wait.reject(new GryphusError('site-unreachable', 'its GridManager is not connected'));
    }
  }
}
