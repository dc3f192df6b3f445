import type { AttemptKey } from '../../src/job/ids.ts';
import { type BorrowedEntry, recoverBorrowed } from '../../src/flock/borrowed-journal.ts';
import { Borrower } from '../../src/flock/borrower.ts';
import type { FlockMessage } from '../../src/flock/flock-wire.ts';
import { Lender } from '../../src/flock/lender.ts';
import type { Going } from '../../src/flock/outgoing-job.ts';
import { type LentEntry, recoverLent } from '../../src/flock/lent-journal.ts';
import type { FromCentralManager, FromWorker, RunSpec } from '../../src/pool/wire/wire.ts';
import type { AttemptRequest } from '../../src/pool/wire/client-wire.ts';
import type { Ending, Report } from '../../src/site/contract.ts';
import { SimulatedCrash } from '../../src/util/crash-point.ts';
import { JUST_TRUE } from '../pool/just-true.ts';

const SIZE = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };

/** A job of our own on its way to a partner's own machines. */
export function going(partner: string, worker: string): Going {
  return { partner, worker, agent: partner, beyond: [], passage: undefined };
}

/** A journal that survives its process: what was added and saved before it died. */
class Disk<Entry> {
  readonly saved: Entry[] = [];
  #pending: Entry[] = [];
  #waiting: (() => void)[] = [];

  /** `isLate`: what is added waits for `flush`, and is lost in a crash. */
  open() {
    return {
      add: (entry: Entry) => void this.#pending.push(entry),
      whenSaved: (call: () => void) => void this.#waiting.push(call),
    };
  }

  flush(): void {
    while (this.#pending.length > 0 || this.#waiting.length > 0) {
      this.saved.push(...this.#pending.splice(0));
      const calls = this.#waiting.splice(0);
      for (const call of calls) call();
    }
  }

  crash(): void {
    this.#pending = [];
    this.#waiting = [];
  }
}

/** The lender's central manager with a machine: keeps what it was given, starts each attempt once. */
export class LendersPool {
  readonly jobs = new Map<AttemptKey, Report>();
  /** How often the program of an attempt was started. */
  readonly starts = new Map<AttemptKey, number>();
  tell: (report: Report) => void = () => undefined;

  readonly ports = {
    submit: ({ key }: AttemptRequest) => {
      if (!this.jobs.has(key)) this.jobs.set(key, { key, is: 'queued' });
    },
    cancel: (key: AttemptKey, how: 'remove' | 'if-not-started') => {
      const job = this.jobs.get(key);
      if (job?.is === 'queued') this.#set({ key, is: 'lost', why: 'it was withdrawn' });
      else if (job?.is === 'running' && how === 'remove') this.end(key, 'cancelled');
    },
    steer: (key: AttemptKey, how: 'vacate' | 'suspend' | 'continue') => {
      if (how === 'vacate' && this.jobs.get(key)?.is === 'running') this.end(key, 'preempted');
    },
    forget: (keys: readonly AttemptKey[], done: () => void) => {
      for (const key of keys) {
        this.ports.cancel(key, 'remove');
        this.jobs.delete(key);
      }
      done();
    },
    follow: () => undefined,
  };

  start(key: AttemptKey): void {
    if (this.jobs.get(key)?.is !== 'queued') return;
    this.starts.set(key, (this.starts.get(key) ?? 0) + 1);
    this.#set({ key, is: 'running', since: 1 });
  }

  end(key: AttemptKey, cause?: 'cancelled' | 'preempted'): void {
    if (this.jobs.get(key)?.is !== 'running') return;
    const how = cause ? ({ kind: 'by-site', cause, message: '' } as const) : ({ kind: 'exited', code: 0 } as const);
    this.#set({ key, is: 'ended', how, startedAt: 1, endedAt: 2 });
  }

  #set(report: Report): void {
    this.jobs.set(report.key, report);
    this.tell(report);
  }
}

/** What lends uses of a central manager, and what that has. */
type CentralManager = Pick<LendersPool, 'ports' | 'tell'> & { readonly jobs: ReadonlyMap<AttemptKey, Report> };

/** Both gateways in one process, with a link and disks that can fail, between two pools. */
export class TwoSides {
  readonly pool = new LendersPool();
  readonly #pool: CentralManager;
  onCrash: (side: 'borrower' | 'lender') => void = () => undefined;
  readonly said: FromWorker[] = [];
  readonly faults: string[] = [];
  readonly refusals: string[] = [];
  readonly #borrowedDisk = new Disk<BorrowedEntry>();
  readonly #lentDisk = new Disk<LentEntry>();
  #toLender: FlockMessage[] = [];
  #toBorrower: FlockMessage[] = [];
  borrower!: Borrower;
  lender!: Lender;
  isUp = false;
  clock = 0;
  /** Why the lender takes nothing. */
  refusal: { readonly clause: string; readonly message: string } | undefined;

  /** `pool`: the lender's central manager, if it is another than the usual one. */
  constructor(pool?: CentralManager) {
    this.#pool = pool ?? this.pool;
    this.startBorrower();
    this.startLender();
    this.connect();
  }

  startBorrower(): void {
    this.#borrowedDisk.crash();
    this.cut(false);
    this.borrower = new Borrower(
      {
        journal: this.#borrowedDisk.open(),
        say: (_, message) => void this.said.push(message),
        tell: (_, message) => {
          if (this.isUp) this.#toLender.push(message);
          return this.isUp;
        },
        changed: () => undefined,
        mostResult: () => 1000,
        fault: (_, message) => void this.faults.push(message),
        refused: (_, clause) => void this.refusals.push(clause),
        clock: () => this.clock,
        log: () => undefined,
      },
      recoverBorrowed(this.#borrowedDisk.saved),
    );
  }

  startLender(): void {
    this.#lentDisk.crash();
    this.cut();
    const lender = new Lender(
      {
        journal: this.#lentDisk.open(),
        tell: (_, message) => {
          if (this.isUp) this.#toBorrower.push(message);
          return this.isUp;
        },
        admit: (_, { key, ad, size, lease, spec }) =>
          this.refusal ?? { request: { key, owner: 'u@p', ad, size, lease, prio: 0, spec, leased: true } },
        bring: () => Promise.resolve(),
        pool: this.#pool.ports,
        discard: () => undefined,
        changed: () => undefined,
        refused: () => undefined,
        clock: () => this.clock,
        now: () => this.clock / 1000,
        log: () => undefined,
      },
      recoverLent(this.#lentDisk.saved, 0),
    );
    this.lender = lender;
    this.#pool.tell = (report) => this.#guard('lender', () => lender.reports([report], false));
    this.#guard('lender', () => lender.reports([...this.#pool.jobs.values()], true));
  }

  cut(tell = true): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.#toLender = [];
    this.#toBorrower = [];
    if (tell) this.#guard('borrower', () => this.borrower.lost('p'));
  }

  connect(): void {
    if (this.isUp) return;
    this.isUp = true;
    this.#guard('borrower', () => this.borrower.sync('p'));
  }

  grant(key: AttemptKey, spec: RunSpec = JUST_TRUE): void {
    const ad = { ClusterId: '1', Owner: '"u"' };
    const start: Extract<FromCentralManager, { t: 'start' }> = {
      t: 'start',
      key,
      claim: 'c',
      kind: 'k',
      size: SIZE,
      spec,
      lease: 600,
      ad,
    };
    this.#guard('borrower', () => this.borrower.start(going('p', 'w'), start, {}));
  }

  order(order: Parameters<Borrower['order']>[0]): void {
    this.#guard('borrower', () => this.borrower.order(order));
  }

  forget(key: AttemptKey): void {
    this.#guard('borrower', () => this.borrower.forget([key]));
  }

  /** Carries messages and saves journals until nothing moves. */
  async settle(turns = 20, isDeaf = false): Promise<void> {
    for (let turn = 0; turn < turns; turn++) {
      this.#guard('borrower', () => this.#borrowedDisk.flush());
      this.#guard('lender', () => this.#lentDisk.flush());
      const [out, back] = [this.#toLender.splice(0), this.#toBorrower.splice(0)];
      for (const message of out) {
        let deciding: Promise<void> | undefined;
        this.#guard('lender', () => {
          deciding = this.lender.hear('p', message as Parameters<Lender['hear']>[1]);
        });
        await deciding?.catch((thrown: unknown) =>
          this.#guard('lender', () => {
            throw thrown;
          }),
        );
      }
      for (const message of isDeaf ? [] : back)
        this.#guard('borrower', () =>
          this.borrower.hear('p', message as Parameters<Borrower['hear']>[1], Buffer.alloc(0)),
        );
      await new Promise((resume) => setImmediate(resume));
    }
  }

  crashes = 0;

  /** A simulated crash is that of the side that runs: another process takes over. */
  #guard(side: 'borrower' | 'lender', work: () => void): void {
    try {
      work();
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown;
      this.crashes += 1;
      if (side === 'borrower') this.startBorrower();
      else this.startLender();
      this.onCrash(side);
    }
  }

  /** As our central manager does when a worker comes back: what it does not hold has not arrived. */
  holds(key: AttemptKey): boolean {
    return this.borrower.held('w').some((held) => held.key === key);
  }

  isGone(key: AttemptKey): boolean {
    return this.said.some((message) => message.t === 'gone' && message.key === key);
  }

  /** How it ended, as our central manager knows it: it was told, or learns it when the worker comes back. */
  endOf(key: AttemptKey): Ending['how'] | undefined {
    const held = this.borrower.held('w').find((one) => one.key === key);
    const said = this.said.find((message) => message.t === 'ended' && message.key === key);
    return said?.t === 'ended' ? said.ending.how : held?.ending?.how;
  }
}
