import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { CentralManagerClient } from '../pool/central-manager-client.ts';
import type { DirectHome } from '../pool/wire/direct-wire.ts';
import type { AttemptRequest, PoolOwner, ToClient } from '../pool/wire/client-wire.ts';
import type { HomeAnswer, HomeRequest } from '../site/chirp.ts';
import type { FetchOutcome, Report } from '../site/contract.ts';
import type { LenderPorts } from './lender.ts';

export interface LendingClientOptions {
  /** The central manager's socket for clients. */
  readonly socket: string;
  readonly onReports: (reports: readonly Report[], complete: boolean) => void;
  readonly onChunk: (key: AttemptKey, stream: 'stdout' | 'stderr', offset: number, bytes: Buffer) => void;
  /** What the worker of one of our attempts asks. */
  readonly onHome: (key: AttemptKey, request: HomeRequest) => Promise<HomeAnswer>;
  readonly log: (message: string, facts?: object) => void;
}

const AGAIN_MS = 500;
const CLIENT = 'flock';

/** Our central manager, to which borrowed jobs are those of one more client. */
export class LendingClient {
  readonly #client: CentralManagerClient;
  readonly #options: LendingClientOptions;
  #closed = false;
  #up = false;
  #opening: Promise<void> | undefined;
  /** Why our central manager does not speak with us: it is of another build. */
  trouble: string | undefined;

  constructor(options: LendingClientOptions) {
    this.#options = options;
    this.#client = new CentralManagerClient({
      socket: options.socket,
      client: CLIENT,
      map: false,
      take: (message, bytes) => {
        if (message.t === 'reports') options.onReports(message.reports, false);
        else if (message.t === 'chunk')
          options.onChunk(message.key, message.stream, message.offset, Buffer.from(bytes));
        else if (message.t === 'home') void this.#home(message);
      },
      onLost: () => {
        this.#up = false;
        void this.open();
      },
    });
  }

  async #home({ call, key, request }: Extract<ToClient, { t: 'home' }>): Promise<void> {
    const { result, bytes } = await this.#options.onHome(key, request);
    // A worker whose answer is lost with the connection asks again.
    await this.#client.say({ t: 'home-answer', call, result }, bytes).catch(() => undefined);
  }

  /** Connects, again and again, and learns of all our attempts. */
  open(): Promise<void> {
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<void> {
    while (!this.#closed && !this.#up) {
      try {
        const { reports } = await this.#client.ask({ t: 'all' }, 'reports');
        this.#up = true;
        this.trouble = undefined;
        this.#options.onReports(reports, true);
      } catch (thrown) {
        if (thrown instanceof GryphusError && thrown.code === 'conflict') this.trouble = thrown.message;
        await sleep(AGAIN_MS);
      }
    }
  }

  get up(): boolean {
    return this.#up;
  }

  async slots(): Promise<readonly AttrTexts[]> {
    return (await this.#client.ask({ t: 'slots' }, 'slots')).ads;
  }

  async owners(): Promise<readonly PoolOwner[]> {
    return (await this.#client.ask({ t: 'owners' }, 'owners')).owners;
  }

  /** What a lender may ask; what is lost with a connection is asked again after the next. */
  get pool(): LenderPorts['pool'] {
    const client = this.#client;
    const quietly = (asked: Promise<unknown>) => void asked.catch(() => undefined);
    return {
      submit: (request: AttemptRequest) =>
        quietly(client.ask({ t: 'prepare', requests: [request], commit: true }, 'done')),
      cancel: (key, how) => quietly(client.ask({ t: 'cancel', keys: [key], how }, 'done')),
      steer: (key, how) =>
        quietly(client.ask({ t: 'steer', jobs: [key.slice(0, key.lastIndexOf('.'))], how }, 'steered')),
      follow: (key, stdout, stderr) => quietly(client.say({ t: 'follow', key, stdout, stderr })),
      forget: (keys, done) => quietly(this.#forget(keys, done)),
    };
  }

  /** Nothing of it may run when it is forgotten: its claim would remain. */
  async #forget(keys: readonly AttemptKey[], done: () => void): Promise<void> {
    for (;;) {
      const { outcomes } = await this.#client.ask({ t: 'cancel', keys: [...keys], how: 'remove' }, 'done');
      if (outcomes.every(([, outcome]) => outcome.ok)) break;
      await sleep(AGAIN_MS);
    }
    await this.#client.ask({ t: 'forget', keys: [...keys] }, 'done');
    done();
  }

  /** Has the worker of an ended attempt connect to a partner's gateway, or end that. Rejects if it cannot. */
  async direct(key: AttemptKey, to: DirectHome | undefined): Promise<void> {
    await this.#client.ask({ t: 'direct', key, ...(to && { to }) }, 'done');
  }

  /** Brings all results of an ended attempt into a directory. */
  async fetch(key: AttemptKey, outputs: 'new' | readonly string[], into: string): Promise<FetchOutcome> {
    for (;;) {
      const request = { key, outputs, stdout: true, stderr: true, into };
      const { outcome } = await this.#client.ask({ t: 'fetch', request }, 'fetched');
      if (outcome.ok || outcome.refusal.code !== 'arriving') return outcome;
      await sleep(50);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client.close();
  }
}
