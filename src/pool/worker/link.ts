import type { Duplex } from 'node:stream';
import { asError } from '../../errors.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { Asking } from '../wire/asking.ts';
import { isProof, nonce, proof, type Token } from '../wire/auth.ts';
import { Channel } from '../wire/frames.ts';
import { Pings, redialMs } from '../wire/pings.ts';
import {
  type ForLink,
  type FromCentralManager,
  type FromWorker,
  type HeldAttempt,
  readFromCentralManager,
  type Size,
  WIRE_VERSION,
} from '../wire/wire.ts';

export interface LinkOptions {
  readonly token: Token;
  readonly instance: string;
  readonly boot: string;
  readonly size: () => Size;
  readonly dial: () => Promise<Duplex>;
  /** Milliseconds, by a clock that cannot be set; default: `performance.now()`. */
  readonly clock?: () => number;
  /** The longest wait before reconnecting, in milliseconds; default 30,000. */
  readonly longestRetryMs?: number;
  /** While it holds nothing, the central manager may have it rest so long between pings, in seconds; default: not at all. */
  readonly longestRest?: number;
  readonly ad: () => AttrTexts;
  readonly held: () => readonly HeldAttempt[];
  readonly take: (message: Exclude<FromCentralManager, ForLink>, bytes: Buffer) => void;
  readonly onUp: (site: string) => void;
  readonly onDown: (message: string) => void;
  /** The central manager refuses to admit it: retrying is useless. */
  readonly onDenied: (message: string) => void;
}

/** The first and the longest wait before reconnecting, in milliseconds. */
const RETRY_MS = 100;
const LONGEST_RETRY_MS = 30_000;
const HANDSHAKE_MS = 30_000;
/** How long the answer to a ping at the start of a job is waited for, in milliseconds. */
const ANSWER_MS = 10_000;

/**
 * The worker's connection home: dials until it is admitted, reports what the worker holds, and redials when the
 * connection is cut.
 */
export class Link {
  readonly #options: LinkOptions;
  readonly asking: Asking;
  #channel: Channel<FromCentralManager, FromWorker> | undefined;
  #up = false;
  #failures = 0;
  #ended = false;
  #retry: NodeJS.Timeout | undefined;
  /** Messages from after the report of what we hold, until the welcome. */
  #unsent: [FromWorker, Uint8Array | undefined][] | undefined;
  readonly #clock: () => number;
  readonly #pings: Pings;
  /** When we sent the last ping that the central manager answered, by the clock that we were given. */
  #heardAt: number;
  /** Milliseconds between pings, and the seconds that the central manager wants us to rest if we can. */
  #everyMs = 0;
  #rest = 0;
  #unsureUntil = Number.NEGATIVE_INFINITY;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    this.#pings = new Pings(this.#clock);
    this.#heardAt = this.#clock();
    this.asking = new Asking((ask, bytes) => {
      this.say(ask, bytes);
      return this.#up;
    });
  }

  /** Seconds since the central manager last demonstrably heard from us. */
  get silence(): number {
    return (this.#clock() - this.#heardAt) / 1000;
  }

  /**
   * Whether it has just asked whether it is heard, because a job came after a rest: until the answer is here, `silence` counts the
   * rest, in which nobody asked.
   */
  get isUnsure(): boolean {
    return this.#clock() < this.#unsureUntil;
  }

  /** Seconds between what the central manager wants to hear of us; 0: no rest. */
  get rest(): number {
    return this.#rest === 0 || this.#options.held().length > 0 ? 0 : this.#rest;
  }

  /** Bytes waiting to be sent. */
  get backlog(): number {
    return this.#channel?.backlog ?? 0;
  }

  get up(): boolean {
    return this.#up;
  }

  open(): void {
    void this.#connect();
  }

  /**
   * Messages sent while disconnected are dropped: the next connection starts with a report of everything the worker
   * holds.
   */
  say(message: FromWorker, bytes?: Uint8Array, unhurried = false): void {
    if (this.#up) this.#channel?.send(message, bytes, unhurried);
    else this.#unsent?.push([message, bytes]);
  }

  end(message: string): void {
    this.#ended = true;
    clearTimeout(this.#retry);
    this.say({ t: 'bye', message });
    this.#channel?.close(message);
  }

  async #connect(): Promise<void> {
    let stream: Duplex;
    try {
      stream = await this.#options.dial();
    } catch (thrown) {
      return this.#down(asError(thrown).message);
    }
    if (this.#ended) return void stream.destroy();
    const channel = new Channel<FromCentralManager, FromWorker>(stream, readFromCentralManager);
    this.#channel = channel;
    const late = setTimeout(() => channel.close('the agent did not answer'), HANDSHAKE_MS);
    const mine = nonce();
    channel.open(
      (message, bytes) => {
        if (this.#up) return this.#take(message, bytes);
        if (this.#handshake(channel, message, mine)) clearTimeout(late);
      },
      (message) => {
        clearTimeout(late);
        this.#down(message);
      },
    );
    const { token, instance } = this.#options;
    channel.send({ t: 'hello', version: WIRE_VERSION, token: token.id, instance, nonce: mine });
  }

  /** True when the handshake is over. */
  #handshake(channel: Channel<FromCentralManager, FromWorker>, message: FromCentralManager, mine: string): boolean {
    const { token, boot, size } = this.#options;
    if (message.t === 'challenge') {
      // The agent, too, must prove that it knows the secret: a stranger on its port gets nothing from us.
      if (!isProof(message.proof, proof(token, 'central-manager', message.nonce, mine)))
        throw new Error('the answer is not from the agent');
      const answer = proof(token, 'worker', message.nonce, mine);
      const attempts = this.#options.held();
      channel.send({ t: 'proof', proof: answer, ad: this.#options.ad(), size: size(), boot, attempts });
      this.#unsent = [];
      return false;
    }
    if (message.t === 'denied') {
      this.#ended = true;
      channel.close(message.message);
      this.#options.onDenied(message.message);
      return true;
    }
    if (message.t !== 'welcome') throw new Error(`'${message.t}' before the welcome`);
    this.#up = true;
    for (const [said, bytes] of this.#unsent ?? []) channel.send(said, bytes);
    this.#unsent = undefined;
    this.#heardAt = this.#clock();
    this.#everyMs = message.ping * 1000;
    this.#rest = 0;
    this.#pings.start(channel, this.#everyMs, this.#ping, 'the agent does not answer', () => this.rest * 1000);
    this.#options.onUp(message.site);
    return true;
  }

  readonly #ping = (n: number): void => this.say({ t: 'ping', n });

  #take(message: FromCentralManager, bytes: Buffer): void {
    if (message.t === 'start' && this.rest > 0 && this.silence * 1000 > this.#everyMs) {
      this.#unsureUntil = this.#clock() + ANSWER_MS;
      this.#pings.send(this.#ping);
    }
    if (message.t === 'pong') {
      // Only a pong resets the back-off, so that a connection that keeps ending right after the welcome is not
      // redialled at once.
      this.#failures = 0;
      this.#heardAt = Math.max(this.#heardAt, this.#pings.answered(message.n) ?? 0);
      if (message.n !== 0) {
        this.#rest = Math.min(message.rest ?? 0, this.#options.longestRest ?? 0);
        this.#unsureUntil = Number.NEGATIVE_INFINITY;
      }
    } else if (message.t === 'answer') this.asking.take(message, bytes);
    else if (message.t === 'challenge' || message.t === 'welcome' || message.t === 'denied')
      throw new Error(`'${message.t}' after the welcome`);
    else this.#options.take(message, bytes);
  }

  #down(message: string): void {
    this.#pings.stop();
    this.#channel = undefined;
    this.#unsent = undefined;
    const was = this.#up;
    this.#up = false;
    this.asking.end(message);
    if (was) this.#options.onDown(message);
    if (this.#ended) return;
    const longest = this.#options.longestRetryMs ?? LONGEST_RETRY_MS;
    this.#retry = setTimeout(() => void this.#connect(), redialMs(this.#failures++, { first: RETRY_MS, longest }));
  }
}
