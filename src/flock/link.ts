import type { Duplex } from 'node:stream';
import { asError, GryphusError } from '../errors.ts';
import { Channel } from '../pool/wire/frames.ts';
import { Pings, redialMs } from '../pool/wire/pings.ts';
import { sinceBootMs } from '../util/boot-clock.ts';
import { type Deferred, deferred } from '../util/deferred.ts';
import { FRAME_LIMITS, MOST_QUESTIONS } from '../pool/wire/direct-wire.ts';
import {
  FLOCK_VERSION,
  type FlockAnswer,
  type FlockAsk,
  type FlockMessage,
  type Of,
  OLDEST_FLOCK,
  readFlockMessage,
} from './flock-wire.ts';
import { Turns } from '../util/turns.ts';
import { Rate } from './rate.ts';

type Question = FlockAsk extends infer A ? (A extends FlockAsk ? Omit<A, 't' | 'id'> : never) : never;
type Answered = Extract<FlockAnswer, { ok: true }> & { readonly bytes: Buffer };

/** What is not for the link itself. */
export type ForGateway = Exclude<FlockMessage, { readonly t: 'hello' | 'ping' | 'pong' | 'answer' }>;

export interface FlockLinkOptions {
  /** Our agent's id. */
  readonly agent: string;
  readonly name: string;
  /** Connects to the partner; `undefined`: it connects to us. */
  readonly dial: () => Promise<Duplex> | undefined;
  /** The partner's agent has said who it is. Throws if it is not whom we know. */
  readonly onHello: (agent: string) => void;
  readonly onUp: () => void;
  readonly onDown: (message: string) => void;
  readonly take: (message: ForGateway, bytes: Buffer) => void;
  /** What arrived does not follow the protocol, or is too much. */
  readonly onFault: (message: string) => void;
  /** Whether a job depends on when the partner was last heard; without one, it is asked half as often. */
  readonly isBusy: () => boolean;
  /** The partner has confirmed a ping; `sentAt`: when it was sent, in milliseconds since the machine was started. */
  readonly onConfirmed: (sentAt: number) => void;
}

const PING_MS = 15_000;
const HELLO_MS = 20_000;
const RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** How long an answer may take, in milliseconds. */
const ANSWER_MS = 120_000;
/** Messages in a second, and at once. More is a flood. */
const RATE = { perSecond: 500, burst: 20_000 } as const;
/** What a question counts: on a fast line, pieces of large files are asked for more often than anything else is said. */
const QUESTION = 1 / 4;
/** Our questions that wait for an answer at once: fewer than a partner may ask, as those that we gave up may wait there still. */
const MOST_ASKING = MOST_QUESTIONS / 2;
/** Bytes that wait to be read by the partner: with more, it does not read what it asks for. */
const MOST_UNREAD = 64 << 20;

/** The link with one partner's gateway: dialled by either side, one at a time, dialled again when it breaks. */
export class FlockLink {
  readonly #options: FlockLinkOptions;
  #channel: Channel<FlockMessage, FlockMessage> | undefined;
  #up = false;
  #ended = false;
  #dialling = false;
  #failures = 0;
  #retry: NodeJS.Timeout | undefined;
  readonly #pings = new Pings(sinceBootMs);
  readonly #asked = new Map<number, { readonly wait: Deferred<Answered>; readonly timer: NodeJS.Timeout }>();
  readonly #turns = new Turns(() => MOST_ASKING);
  #lastAsked = 0;
  /** When the last byte came, by the monotonic clock in milliseconds. */
  #heardAt = performance.now();
  /** When the last ping was sent, by the same clock. */
  #pingedAt = 0;
  /** The version that the next dial greets with: that of an older partner only after it has been seen. */
  #offered = FLOCK_VERSION;
  /** The version of the present link. */
  version = OLDEST_FLOCK;
  /** Why it is down. */
  trouble = 'not connected yet';

  constructor(options: FlockLinkOptions) {
    this.#options = options;
  }

  get up(): boolean {
    return this.#up;
  }

  /** Seconds since anything was heard of the partner. */
  get silence(): number {
    const at = this.#up ? (this.#channel?.heardAt ?? this.#heardAt) : this.#heardAt;
    return (performance.now() - at) / 1000;
  }

  get backlog(): number {
    return this.#channel?.backlog ?? 0;
  }

  /** Connects if this side dials and there is no link. Called repeatedly. */
  open(): void {
    if (this.#ended || this.#channel || this.#dialling || this.#retry) return;
    const dialling = this.#options.dial();
    if (!dialling) return;
    this.#dialling = true;
    dialling.then(
      (stream) => {
        this.#dialling = false;
        if (this.#ended || this.#channel) stream.destroy();
        else this.#accept(stream, this.#offered);
      },
      (thrown: unknown) => {
        this.#dialling = false;
        this.#later(asError(thrown).message);
      },
    );
  }

  /** A stream that only a holder of the key can have opened. It replaces the one that was there. */
  accept(stream: Duplex): void {
    this.#accept(stream, undefined);
  }

  /** `offered`: the version that we greet with, on a stream that we dialled; the other side answers the greeting. */
  #accept(stream: Duplex, offered: number | undefined): void {
    if (this.#ended) return void stream.destroy();
    this.cut('a new link took its place');
    const channel = new Channel<FlockMessage, FlockMessage>(stream, readFlockMessage, FRAME_LIMITS);
    this.#channel = channel;
    const rate = new Rate(RATE.perSecond, RATE.burst);
    const late = setTimeout(() => channel.close('no greeting arrived'), HELLO_MS);
    const greet = (version: number) => {
      const { agent, name } = this.#options;
      channel.send({ t: 'hello', version, agent, name });
    };
    let greeted = false;
    channel.open(
      (message, bytes) => {
        if (this.#channel !== channel) return;
        if (!rate.take(this.#countOf(message))) throw this.#fault('it sends too many messages');
        if (channel.backlog > MOST_UNREAD) throw this.#fault('it does not read what it asks for');
        if (!greeted) {
          if (message.t !== 'hello') throw this.#fault(`'${message.t}' before the greeting`);
          const version = this.#versionWith(message.version, offered);
          this.#options.onHello(message.agent);
          greeted = true;
          clearTimeout(late);
          if (offered === undefined) greet(version);
          this.version = version;
          this.#rise(channel);
        } else this.#take(message, bytes);
      },
      (message) => {
        clearTimeout(late);
        if (this.#channel !== channel) return;
        if (/^(invalid message|A frame)/.test(message)) this.#options.onFault(message);
        this.#down(message);
      },
    );
    if (offered !== undefined) greet(offered);
  }

  /** The version that both speak. Throws 'protocol-error' if there is none, or the link has to be made again for it. */
  #versionWith(theirs: number, offered: number | undefined): number {
    this.#offered = FLOCK_VERSION;
    const version = Math.min(theirs, offered ?? FLOCK_VERSION);
    // The first version did not answer a greeting with the version that both have, but closed the link.
    const hangsUp = theirs === 1 && offered !== undefined && offered > 1;
    if (hangsUp) this.#offered = theirs;
    if (version >= OLDEST_FLOCK && !hangsUp) return version;
    const ours = `${OLDEST_FLOCK} to ${FLOCK_VERSION}`;
    throw new GryphusError('protocol-error', `its flock speaks version ${theirs}, ours ${ours}`);
  }

  send(message: FlockMessage, bytes?: Uint8Array): boolean {
    if (!this.#up || !this.#channel) return false;
    this.#channel.send(message, bytes);
    return true;
  }

  /**
   * Waits its turn if many questions do. Rejects with 'site-unreachable' if the link ends first, with 'site-busy' if the
   * partner refuses, with 'site-refused' if it would again.
   */
  ask(question: Question): Promise<Answered> {
    return this.#turns.run(() => this.#ask(question));
  }

  #ask(question: Question): Promise<Answered> {
    const id = ++this.#lastAsked;
    const wait = deferred<Answered>();
    const asked = { ...question, t: 'ask' as const, id };
    if (!this.send(asked)) wait.reject(new GryphusError('site-unreachable', 'the partner is not connected'));
    else {
      const timer = setTimeout(() => {
        this.#asked.delete(id);
        wait.reject(new GryphusError('site-unreachable', 'the partner did not answer'));
      }, ANSWER_MS);
      this.#asked.set(id, { wait, timer });
    }
    return wait.promise;
  }

  /** Ends the present link; it is dialled again. */
  cut(message: string): void {
    const channel = this.#channel;
    if (!channel) return;
    this.#down(message, true);
    channel.close(message);
  }

  close(message: string): void {
    this.#ended = true;
    clearTimeout(this.#retry);
    this.cut(message);
  }

  /** How much a message counts towards a flood: nothing if we asked for it. */
  #countOf(message: FlockMessage): number {
    if (message.t === 'answer') return this.#asked.has(message.id) ? 0 : 1;
    return message.t === 'ask' ? QUESTION : 1;
  }

  #fault(message: string): Error {
    this.#options.onFault(message);
    return new GryphusError('protocol-error', message);
  }

  #rise(channel: Channel<FlockMessage, FlockMessage>): void {
    this.#up = true;
    this.#failures = 0;
    this.trouble = '';
    this.#pings.start(channel, PING_MS, this.#ping, 'the partner does not answer', () =>
      this.#options.isBusy() ? 0 : 2 * PING_MS,
    );
    this.#pings.send(this.#ping);
    this.#options.onUp();
  }

  readonly #ping = (n: number): void => {
    this.#pingedAt = performance.now();
    this.#channel?.send({ t: 'ping', n });
  };

  /** From now on a job depends on when the partner was last heard: asks, unless that was done lately. */
  confirm(): void {
    if (this.#up && performance.now() - this.#pingedAt >= PING_MS) this.#pings.send(this.#ping);
  }

  #take(message: FlockMessage, bytes: Buffer): void {
    if (message.t === 'hello') throw this.#fault('a second greeting');
    else if (message.t === 'ping') this.send({ t: 'pong', n: message.n });
    else if (message.t === 'answer') this.#answered(message, bytes);
    else if (message.t === 'pong') {
      const sentAt = this.#pings.answered(message.n);
      if (sentAt !== undefined) this.#options.onConfirmed(sentAt);
    } else this.#options.take(message, bytes);
  }

  #answered(message: Of<'answer'>, bytes: Buffer): void {
    const asked = this.#asked.get(message.id);
    if (!asked) return;
    this.#asked.delete(message.id);
    clearTimeout(asked.timer);
    if (message.ok) asked.wait.resolve({ ...message, bytes });
    else asked.wait.reject(new GryphusError(message.refused ? 'site-refused' : 'site-busy', message.message));
  }

  #down(message: string, replaced = false): void {
    this.#heardAt = this.#channel?.heardAt ?? this.#heardAt;
    this.#channel = undefined;
    this.#pings.stop();
    const was = this.#up;
    this.#up = false;
    this.trouble = message;
    for (const { wait, timer } of this.#asked.values()) {
      clearTimeout(timer);
      wait.reject(new GryphusError('site-unreachable', message));
    }
    this.#asked.clear();
    if (was) this.#options.onDown(message);
    if (!replaced) this.#later(message);
  }

  #later(message: string): void {
    this.trouble = message;
    if (this.#ended) return;
    const wait = redialMs(this.#failures++, { first: RETRY_MS, longest: LONGEST_RETRY_MS });
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.open();
    }, wait);
  }
}
