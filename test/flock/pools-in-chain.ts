import type { Borrower } from '../../src/flock/borrower.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AttemptRequest } from '../../src/pool/wire/client-wire.ts';
import type { FromWorker } from '../../src/pool/wire/wire.ts';
import type { Report } from '../../src/site/contract.ts';
import { type LendersPool, TwoSides } from './two-sides.ts';

/**
 * The central manager of a pool in the middle, whose only machines are a partner's: what its gateway lends it gets from its gateway
 * that borrows, under the same key.
 */
class MiddlePool {
  readonly #jobs = new Map<AttemptKey, Report>();
  readonly #next: TwoSides;
  readonly #cancelling = new Set<AttemptKey>();
  tell: (report: Report) => void = () => undefined;

  constructor(next: TwoSides) {
    this.#next = next;
  }

  get jobs(): ReadonlyMap<AttemptKey, Report> {
    return this.#jobs;
  }

  readonly ports = {
    submit: ({ key }: AttemptRequest) => {
      if (!this.#jobs.has(key)) this.#jobs.set(key, { key, is: 'queued' });
    },
    cancel: (key: AttemptKey, how: 'remove' | 'if-not-started') => {
      const job = this.#jobs.get(key);
      if (!job || job.is === 'ended' || (how === 'if-not-started' && job.is === 'running')) return;
      this.#cancelling.add(key);
      if (this.#next.holds(key)) this.#next.order({ t: 'cancel', key, how, message: '' });
      else this.#set({ key, is: 'lost', why: 'it was withdrawn' });
    },
    steer: (key: AttemptKey, how: 'vacate' | 'suspend' | 'continue') => {
      if (how === 'vacate') this.#next.order({ t: 'cancel', key, how, message: '' });
    },
    forget: (keys: readonly AttemptKey[], done: () => void) => {
      for (const key of keys) {
        if (this.#jobs.get(key)?.is !== 'ended') this.ports.cancel(key, 'remove');
        this.#jobs.delete(key);
        this.#cancelling.delete(key);
        this.#next.forget(key);
      }
      done();
    },
    follow: () => undefined,
  };

  /** Grants what waits, and believes what the borrowing side holds, as when a worker comes back. */
  look(): void {
    for (const message of this.#next.said.splice(0)) this.#heard(message);
    for (const [key, { is }] of this.#jobs) {
      const held = this.#next.borrower.held('w').find((one) => one.key === key);
      if (!held && is === 'queued' && !this.#cancelling.has(key)) this.#next.grant(key);
      else if (!held && is === 'queued') this.#set({ key, is: 'lost', why: 'it was withdrawn' });
      else if (held?.is === 'running' && is === 'queued') this.#set({ key, is: 'running', since: 1 });
      else if (held?.ending && is !== 'ended') this.#set({ key, is: 'ended', ...held.ending });
    }
  }

  #heard(message: FromWorker): void {
    if (!('key' in message) || !this.#jobs.has(message.key)) return;
    const { key } = message;
    if (message.t === 'started') this.#set({ key, is: 'running', since: 1 });
    if (message.t === 'ended') this.#set({ key, is: 'ended', ...message.ending });
    if (message.t === 'gone' && this.#cancelling.has(key)) this.#set({ key, is: 'lost', why: message.message });
  }

  #set(report: Report): void {
    this.#jobs.set(report.key, report);
    this.tell(report);
  }
}

/** Three gateways in a line, each with its journals, in one process: the one in the middle lends and borrows the same attempt. */
export class PoolsInChain {
  readonly last = new TwoSides();
  readonly middle = new MiddlePool(this.last);
  readonly first = new TwoSides(this.middle);

  constructor() {
    // One process: if one half of the gateway in the middle dies, so does the other.
    this.first.onCrash = (side) => {
      if (side === 'lender') this.last.startBorrower();
    };
    this.last.onCrash = (side) => {
      if (side === 'borrower') this.first.startLender();
    };
  }

  get crashes(): number {
    return this.first.crashes + this.last.crashes;
  }

  get pool(): LendersPool {
    return this.last.pool;
  }

  get borrower(): Borrower {
    return this.first.borrower;
  }

  killMiddle(): void {
    this.first.startLender();
    this.last.startBorrower();
  }

  connect(): void {
    this.first.connect();
    this.last.connect();
  }

  async settle(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn++) {
      await this.first.settle(2);
      this.middle.look();
      await this.last.settle(2);
      this.middle.look();
    }
  }
}
