import { connect, type Socket } from 'node:net';
import { GryphusError } from '../errors.ts';
import { type Deferred, deferred } from '../util/deferred.ts';
import { failureOf } from './host/places.ts';
import { CLIENT_WIRE_VERSION, type FromClient, readToClient, type ToClient } from './wire/client-wire.ts';
import { Channel } from './wire/frames.ts';

type Question = Extract<FromClient, { readonly id: number }>;
type Unnumbered = Question extends infer Q ? (Q extends Question ? Omit<Q, 'id'> : never) : never;
type AnswerTo = Extract<ToClient, { readonly id?: number }>;

export interface CentralManagerClientOptions {
  /** The central manager's socket for clients. */
  readonly socket: string;
  readonly client: string;
  readonly map: boolean;
  /** Receives unsolicited messages. */
  readonly take: (message: ToClient, bytes: Buffer) => void;
  /** The connection ended; messages may have been missed. */
  readonly onLost: () => void;
  /** How long to wait for a central manager that is starting, in milliseconds; default: not at all. */
  readonly patienceMs?: number;
}

/** A client that only asks questions. `who` distinguishes it from other clients in this process. */
export function askCentralManager(socket: string, who: string): CentralManagerClient {
  const nothing = () => undefined;
  return new CentralManagerClient({
    socket,
    client: `${who}-${process.pid}`,
    map: false,
    take: nothing,
    onLost: nothing,
  });
}

/** The interval between attempts to connect, in milliseconds. */
const LOOK_MS = 20;
/** A central manager that speaks another version is not asked again for this time, in milliseconds. */
const DENIED_MS = 1000;

/** A client's connection to the central manager, opened on first use and again after it was lost. */
export class CentralManagerClient {
  readonly #options: CentralManagerClientOptions;
  #channel: Promise<Channel<ToClient, FromClient>> | undefined;
  readonly #waiting = new Map<number, Deferred<AnswerTo>>();
  #denied: { readonly error: GryphusError; readonly at: number } | undefined;
  #last = 0;
  #closed = false;

  constructor(options: CentralManagerClientOptions) {
    this.#options = options;
  }

  /** Rejects with 'site-unreachable' if the central manager is away, and with 'site-busy' if it cannot answer now. */
  async ask<T extends AnswerTo['t']>(question: Unnumbered, answer: T): Promise<Extract<AnswerTo, { t: T }>> {
    const channel = await this.open();
    const id = ++this.#last;
    const wait = deferred<AnswerTo>();
    this.#waiting.set(id, wait);
    channel.send({ ...question, id });
    const got = await wait.promise;
    if (got.t === answer) return got as Extract<AnswerTo, { t: T }>;
    const message = got.t === 'failed' ? got.message : `it answered '${got.t}'`;
    throw new GryphusError('site-busy', `The pool's central manager: ${message}`);
  }

  async say(message: FromClient, bytes?: Uint8Array): Promise<void> {
    (await this.open()).send(message, bytes);
  }

  /** Rejects with 'conflict' if the central manager speaks another version of the protocol. */
  open(): Promise<Channel<ToClient, FromClient>> {
    const known = this.#channel;
    if (known) return known;
    if (this.#denied && performance.now() - this.#denied.at < DENIED_MS) return Promise.reject(this.#denied.error);
    const opening = this.#connect();
    this.#channel = opening;
    opening.catch(() => {
      if (this.#channel === opening) this.#channel = undefined;
    });
    return opening;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const channel = await this.#channel?.catch(() => undefined);
    channel?.close('no longer needed');
  }

  async #connect(): Promise<Channel<ToClient, FromClient>> {
    const { client, map, take } = this.#options;
    const socket = await this.#dial();
    const channel = new Channel<ToClient, FromClient>(socket, readToClient);
    channel.open(
      (message, bytes) => {
        if (message.t === 'denied') {
          const later = (message.version ?? 0) > CLIENT_WIRE_VERSION;
          const remedy = later ? 'use the gryphus that started it' : 'replace it: gryphus down, then gryphus up';
          const text = `${message.message}; ${remedy}`;
          this.#denied = { error: new GryphusError('conflict', text), at: performance.now() };
          return channel.close(text);
        }
        const id = 'id' in message ? message.id : undefined;
        const wait = id === undefined ? undefined : this.#waiting.get(id);
        if (id === undefined || !wait) return take(message, bytes);
        this.#waiting.delete(id);
        wait.resolve(message as AnswerTo);
      },
      (message) => this.#lost(message),
    );
    channel.send({ t: 'open', client, map, version: CLIENT_WIRE_VERSION });
    return channel;
  }

  async #dial(): Promise<Socket> {
    const { socket: path, patienceMs = 0 } = this.#options;
    for (const end = performance.now() + patienceMs; ; ) {
      const made = connect({ path });
      const error = await new Promise<Error | undefined>((resolve) => {
        made.once('connect', () => resolve(undefined));
        made.once('error', resolve);
      });
      if (error === undefined) return made;
      if (this.#closed || performance.now() > end)
        throw new GryphusError(
          'site-unreachable',
          `The pool's central manager is not available: ${failureOf(path) ?? error.message}`,
        );
      await new Promise((resume) => setTimeout(resume, LOOK_MS));
    }
  }

  #lost(message: string): void {
    this.#channel = undefined;
    for (const wait of this.#waiting.values())
      wait.reject(
        new GryphusError('site-unreachable', `The connection to the pool's central manager was lost: ${message}`),
      );
    this.#waiting.clear();
    this.#options.onLost();
  }
}
