import type { Duplex } from 'node:stream';
import type { AttemptKey } from '../job/ids.ts';
import { type Served, serveDirect } from '../pool/wire/direct-serving.ts';
import { type InputQuestion, MOST_PIECE, readInputQuestion } from '../pool/wire/direct-wire.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { Borrower } from './borrower.ts';
import type { Of } from './flock-wire.ts';
import { inputBytes } from './outgoing.ts';

export interface DirectInputsOptions {
  readonly borrower: Pick<Borrower, 'get' | 'piece'>;
  /** Whether anything is said to a partner now. */
  readonly isHeard: (name: string) => boolean;
  /** Whether this process may have one more connection. */
  readonly mayConnect: () => boolean;
  readonly log: (message: string, facts?: object) => void;
}

/** How long a worker has to connect, in milliseconds. */
const COME_MS = 15_000;
/** A connection by which nothing was asked for so long is closed, in milliseconds. */
const IDLE_MS = 60_000;
/** Connections with workers of one partner at once, and for one job. */
const MOST_LINKS = 32;
const MOST_TIMES = 20;
/** What each question counts at least, and what a connection may take beyond the job's inputs, in bytes. */
const LEAST = 1024;
const BEYOND = 1 << 20;

interface Job {
  readonly partner: string;
  readonly key: AttemptKey;
}

interface Link extends Job {
  /** Until the worker has connected. */
  awaited?: { readonly secret: Buffer; readonly late: NodeJS.Timeout };
  close(message: string): void;
}

/** Sends the inputs of our jobs at partners to the partners' workers, by connections of these. */
export class DirectInputs {
  readonly #options: DirectInputsOptions;
  readonly #links = new Map<string, Link>();
  readonly #times = new Map<AttemptKey, number>();

  constructor(options: DirectInputsOptions) {
    this.#options = options;
  }

  /** Connections that are open, or awaited. */
  get links(): number {
    return this.#links.size;
  }

  /**
   * A worker of the partner may get the inputs of a job that is there and that has not started, if it connects within 15 seconds. Throws
   * for anything else.
   */
  open(partner: string, { key, name, secret }: Extract<Of<'ask'>, { what: 'inputs' }>): void {
    if (!this.#isLacking(partner, key)) throw new Error('there is no such job of ours that waits for inputs there');
    const times = (this.#times.get(key) ?? 0) + 1;
    this.#times.set(key, times);
    const links = [...this.#links.values()].filter((link) => link.partner === partner).length;
    if (times > MOST_TIMES || links >= MOST_LINKS || this.#links.has(name) || !this.#options.mayConnect())
      throw new Error('too many are connecting');
    crashPoint('inputs.told');
    const late = setTimeout(() => void this.#links.delete(name), COME_MS);
    const close = () => clearTimeout(late);
    this.#links.set(name, { partner, key, close, awaited: { secret: Buffer.from(secret, 'hex'), late } });
  }

  /** The secret of a worker that connects by this name. */
  keyOf(name: string): Buffer | undefined {
    const link = this.#links.get(name);
    return link && this.#options.isHeard(link.partner) ? link.awaited?.secret : undefined;
  }

  /** A worker has connected. False if it was not awaited by this name. */
  welcome(name: string, stream: Duplex): boolean {
    const link = this.#links.get(name);
    if (!link?.awaited) return false;
    clearTimeout(link.awaited.late);
    // Whoever learns the secret from now on gains nothing by it.
    this.#links.delete(name);
    this.#serve(name, link, stream);
    return true;
  }

  /** Called about once a second. */
  tick(): void {
    for (const [name, link] of this.#links) if (!this.#isWanted(link)) this.#end(name, 'it is not needed any more');
    for (const key of this.#times.keys()) if (!this.#options.borrower.get(key)) this.#times.delete(key);
  }

  /** Nothing more goes to a partner, or, without its name, to any. */
  end(partner?: string): void {
    for (const [name, link] of this.#links)
      if (partner === undefined || link.partner === partner) this.#end(name, 'the agreement is over');
  }

  #end(name: string, message: string): void {
    const link = this.#links.get(name);
    this.#links.delete(name);
    link?.close(message);
  }

  #isLacking(partner: string, key: AttemptKey): boolean {
    const one = this.#options.borrower.get(key);
    return one?.job.partner === partner && one.phase === 'committed' && one.startedAt === undefined;
  }

  #isWanted({ partner, key }: Job): boolean {
    return this.#isLacking(partner, key) && this.#options.isHeard(partner);
  }

  #serve(name: string, { partner, key }: Job, stream: Duplex): void {
    const one = this.#options.borrower.get(key);
    if (!one) return void stream.destroy();
    crashPoint('inputs.up');
    let left = inputBytes(one.job.spec) + BEYOND;
    const answer = async ({ sha256, offset, bytes }: InputQuestion): Promise<Served> => {
      if (!this.#isWanted(link)) throw new Error('it is not needed any more');
      if (left <= 0) throw new Error('it has asked for more than there is');
      const wanted = Math.min(bytes, MOST_PIECE);
      left -= Math.max(wanted, LEAST);
      const piece = await this.#options.borrower.piece(partner, { key, sha256, offset, bytes: wanted });
      crashPoint('inputs.served');
      return [{}, piece];
    };
    const channel = serveDirect(stream, {
      read: readInputQuestion,
      answer,
      idleMs: IDLE_MS,
      onEnd: () => {
        if (this.#links.get(name) === link) this.#links.delete(name);
      },
    });
    const link: Link = { partner, key, close: (message) => channel.close(message) };
    this.#links.set(name, link);
    this.#options.log('inputs of a job go to its worker itself', { partner, key });
  }
}
