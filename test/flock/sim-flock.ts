import { AGREEMENT_KEYS, type Agreement } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { Balance } from '../../src/flock/balance.ts';
import { recoverBorrowed } from '../../src/flock/borrowed-journal.ts';
import { Borrower } from '../../src/flock/borrower.ts';
import { goingRequirements, isRefused, lendable, PASSED_HERE } from '../../src/flock/clauses.ts';
import type { FlockMessage, LentKind } from '../../src/flock/flock-wire.ts';
import { incoming } from '../../src/flock/incoming.ts';
import { Lender } from '../../src/flock/lender.ts';
import { recoverLent } from '../../src/flock/lent-journal.ts';
import { availability, idleMachines } from '../../src/flock/lists.ts';
import { type Neighbour, Passing } from '../../src/flock/passing.ts';
import { usable, withWay } from '../../src/flock/paths.ts';
import type { AttrTexts } from '../../src/job/attrs.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import { recover } from '../../src/pool/central-manager/central-manager-journal.ts';
import { slotAds } from '../../src/pool/central-manager/slot-ads.ts';
import { NOTHING, plus } from '../../src/pool/wire/slots.ts';
import type { FromCentralManager, RunSpec, Size } from '../../src/pool/wire/wire.ts';
import type { Ending, Report } from '../../src/site/contract.ts';
import { going } from './two-sides.ts';

const ONE: Size = { cpus: 1, memoryMb: 1000, diskKb: 1e6, gpus: 0 };
const ASKED: Size = { cpus: 1, memoryMb: 100, diskKb: 1, gpus: 0 };
const SPEC: RunSpec = {
  executable: { kind: 'there', path: '/bin/x' },
  args: [],
  env: {},
  inputs: [],
  joinStderr: false,
};
const EMPTY = Buffer.alloc(0);

interface SimNeighbour extends Neighbour {
  kinds: readonly LentKind[];
}

interface Coming {
  readonly at: number;
  readonly pool: SimPool;
  readonly worker: string;
  readonly key: AttemptKey;
  isOff: boolean;
}

/** Simulated time, in seconds, and what is to come. */
export class SimFlock {
  now = 0;
  readonly pools: SimPool[] = [];
  /** How often each attempt's program was started, anywhere. */
  readonly starts = new Map<string, number>();
  coming: Coming[] = [];
  readonly #lookEvery: number;

  constructor(lookEvery = 30) {
    this.#lookEvery = lookEvery;
  }

  get lookEvery(): number {
    return this.#lookEvery;
  }

  agree(a: SimPool, b: SimPool, terms: Partial<Agreement> = {}): void {
    a.agreements.set(b.name, agreement(b.name, terms));
    b.agreements.set(a.name, agreement(a.name, terms));
  }

  /** Lets everything happen until `done`, or for at most so many seconds. */
  async run(done: () => boolean, most: number): Promise<void> {
    const end = this.now + most;
    await this.calm();
    while (!done() && this.now < end) {
      this.now += this.#lookEvery;
      const due = this.coming.filter((one) => one.at <= this.now).sort((x, y) => x.at - y.at);
      this.coming = this.coming.filter((one) => one.at > this.now && !one.isOff);
      for (const one of due) if (!one.isOff) one.pool.ends(one);
      await this.calm();
      for (const pool of this.pools) pool.look();
      await this.calm();
      for (const pool of this.pools) pool.cm.tick();
      await this.calm();
    }
  }

  async calm(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await new Promise((resume) => setImmediate(resume));
  }
}

function agreement(name: string, terms: Partial<Agreement>): Agreement {
  const base = presets(AGREEMENT_KEYS);
  return { ...base, name, keyFile: '', to: true, from: true, network: true, max: 1000, ...terms };
}

/** A pool: the real central manager and both halves of the real gateway; its stations run what they are given. */
export class SimPool {
  readonly name: string;
  readonly agreements = new Map<string, Agreement>();
  readonly cm: CentralManager;
  readonly balances = new Map<string, Balance>();
  /** Jobs of this pool: when each was submitted, started last, and ended. */
  readonly jobs = new Map<
    number,
    { readonly at: number; startedAt?: number; endedAt?: number; tries: number; ends: number }
  >();
  readonly #flock: SimFlock;
  readonly #borrower: Borrower;
  readonly #lender: Lender;
  readonly #passing: Passing;
  readonly #neighbours = new Map<string, SimNeighbour>();
  readonly #kinds = new Map<string, AttrTexts>();
  readonly #seconds = new Map<number, number>();
  readonly #shown = new Map<string, string>();
  #slots: readonly AttrTexts[] = [];
  #slotsAt = 0;

  constructor(flock: SimFlock, name: string, stations: number) {
    this.#flock = flock;
    this.name = name;
    const journal = { add: () => undefined, whenSaved: (call: () => void) => call() };
    const tell = (to: string, message: FlockMessage) => {
      const pool = flock.pools.find((one) => one.name === to);
      setImmediate(() => pool?.hear(name, message));
      return true;
    };
    const clock = () => flock.now * 1000;
    const common = { journal, tell, changed: () => undefined, clock, log: () => undefined };
    this.cm = new CentralManager(
      {
        journal,
        toWorker: (worker, message) => this.#toWorker(worker, message),
        toClient: (client, report) => this.#toClient(client, report),
        now: clock,
        clock,
        log: () => undefined,
      },
      recover([]),
    );
    this.#borrower = new Borrower(
      {
        ...common,
        say: (worker, message) => {
          this.cm.hear(worker, message, EMPTY);
          if (message.t === 'gone') this.#passing.back(message.key, message.message);
        },
        fault: (_, message) => {
          throw new Error(message);
        },
        refused: () => undefined,
        mostResult: () => 1e9,
      },
      recoverBorrowed([]),
    );
    this.#lender = new Lender(
      {
        ...common,
        now: () => flock.now,
        admit: (partner, asked) => {
          const { path = [], to = [] } = asked;
          const may = this.#lendable(partner, to.length > 0);
          if (isRefused(may)) return may;
          if (may.cores < 1) return { clause: 'max', message: '' };
          const wrong = this.#passing.refusal(this.#neighbour(partner), asked);
          if (wrong) return wrong;
          const made = incoming(asked, this.#agreement(partner), path[0]?.agent ?? partner);
          if ('clause' in made || 'base' in made.request.spec)
            return { clause: 'job', message: 'message' in made ? made.message : '' };
          const ad = withWay(made.request.ad, partner, { path, to }) ?? made.request.ad;
          return { request: { ...made.request, ad, spec: made.request.spec }, passage: { path, to } };
        },
        bring: () => Promise.resolve(),
        discard: () => undefined,
        refused: () => undefined,
        pool: {
          submit: (request) => {
            this.cm.prepare('flock', [request]);
            this.cm.commit([request.key], () => undefined);
          },
          cancel: (key, how) => this.cm.cancel([key], how, ''),
          steer: (key) => this.cm.cancel([key], 'vacate', ''),
          follow: () => undefined,
          forget: (keys, done) => {
            this.cm.cancel(keys, 'remove', '');
            this.cm.forget(keys, done);
          },
        },
      },
      recoverLent([], 0),
    );
    this.#passing = new Passing({
      agent: name,
      partners: this.#neighbours,
      lender: () => this.#lender,
      borrower: () => this.#borrower,
      shown: () => ({ offered: (partner) => [...this.#offersOf(partner)], waiting: this.#waits }),
      tell,
      clock,
    });
    for (let i = 0; i < stations; i++)
      this.#join(`${name}${i}`, ONE, { GryphusLendsAs: '"nobody"', GryphusLendsOffline: 'true' });
    flock.pools.push(this);
  }

  submit(jobs: number, seconds: () => number): void {
    for (let i = 0; i < jobs; i++) {
      const id = this.jobs.size + 1;
      this.jobs.set(id, { at: this.#flock.now, tries: 0, ends: 0 });
      this.#seconds.set(id, seconds());
      this.#try(id);
    }
  }

  #try(id: number): void {
    const job = this.jobs.get(id);
    if (!job) return;
    job.tries += 1;
    const ad = {
      Owner: '"u"',
      ClusterId: String(id),
      Requirements: 'TARGET.Arch == "X86_64"',
      RequestCpus: '1',
      RequestMemory: '100',
      RequestDisk: '1',
      QDate: String(job.at),
      SimSeconds: String(this.#seconds.get(id) ?? 0),
    };
    const request = {
      key: `${this.name}.${id}.0.${job.tries}` as AttemptKey,
      owner: 'u',
      ad,
      size: ASKED,
      prio: 0,
      lease: 2400,
      spec: SPEC,
    };
    this.cm.prepare('own', [request]);
    this.cm.commit([request.key], () => undefined);
  }

  #join(instance: string, size: Size, more: AttrTexts): void {
    const ad = {
      Name: `"slot1@${instance}"`,
      Arch: '"X86_64"',
      OpSys: '"LINUX"',
      SlotType: '"Partitionable"',
      START: 'true',
      Requirements: 'START',
      Rank: '0.0',
      ...more,
    };
    const about = { instance, token: 't', site: 's', boot: 'b', size };
    this.cm.join(this.cm.collector.make(about, ad, instance, instance), []);
  }

  #toWorker(worker: string, message: FromCentralManager): void {
    const [partner, ...beyond] = worker.startsWith('@') ? worker.slice(1).split('>') : [];
    if (message.t === 'kind') this.#kinds.set(message.id, message.ad);
    else if (message.t === 'start') {
      if (partner !== undefined) {
        const way = {
          beyond: beyond.map((agent) => ({ agent, name: agent })),
          passage: this.#passing.passageOf(message.key),
        };
        return this.#borrower.start({ ...going(partner, worker), ...way }, message, this.#kinds.get(message.kind));
      }
      const { key } = message;
      const own: AttrTexts = { ...this.#kinds.get(message.kind), ...message.ad };
      this.#flock.starts.set(key, (this.#flock.starts.get(key) ?? 0) + 1);
      const at = this.#flock.now + Number(own['SimSeconds']);
      this.#flock.coming.push({ at, pool: this, worker, key, isOff: false });
      this.cm.hear(worker, { t: 'started', key, at: this.#flock.now }, EMPTY);
    } else if (partner !== undefined) {
      if (message.t === 'forget') this.#borrower.forget(message.keys);
      else if (message.t === 'cancel') this.#borrower.order(message);
    } else if (message.t === 'cancel') {
      const one = this.#flock.coming.find(({ key, isOff, pool }) => key === message.key && pool === this && !isOff);
      if (!one) return;
      one.isOff = true;
      this.#over(one, { kind: 'by-site', cause: 'preempted', message: '', by: 'priority' });
    }
  }

  ends(one: Coming): void {
    this.#over(one, { kind: 'exited', code: 0 });
  }

  #over({ worker, key }: Coming, how: Ending['how']): void {
    this.cm.hear(worker, { t: 'ended', key, ending: { how, startedAt: 1, endedAt: 2 }, files: [] }, EMPTY);
  }

  #toClient(client: string, report: Report): void {
    if (client === 'flock') return this.#lender.reports([report], false);
    const id = Number(report.key.split('.')[1]);
    const job = this.jobs.get(id);
    if (!job) return;
    if (report.is === 'running') job.startedAt = this.#flock.now;
    if (report.is !== 'ended') return;
    this.cm.forget([report.key], () => undefined);
    if (report.how.kind === 'exited') {
      job.ends += 1;
      job.endedAt = this.#flock.now;
    } else this.#try(id);
  }

  hear(partner: string, message: FlockMessage): void {
    switch (message.t) {
      case 'list':
        Object.assign(this.#neighbour(partner), { kinds: message.kinds, takesForwarded: message.forwarded === true });
        return;
      case 'prepare':
      case 'commit':
      case 'cancel':
      case 'forget':
        return void this.#lender.hear(partner, message);
      case 'prepared':
      case 'refused':
      case 'onward':
      case 'started':
      case 'ended':
      case 'gone':
      case 'unknown':
        return this.#borrower.hear(partner, message, EMPTY);
      case 'hello':
      case 'sync':
      case 'suspend':
      case 'resume':
      case 'checkpoint':
      case 'follow':
      case 'suspended':
      case 'resumed':
      case 'chunk':
      case 'ask':
      case 'answer':
      case 'ping':
      case 'pong':
    }
  }

  #agreement(partner: string): Agreement {
    const found = this.agreements.get(partner);
    if (!found) throw new Error(`no agreement with ${partner}`);
    return found;
  }

  /** A partner as Passing knows it: its agent is its name. */
  #neighbour(name: string): SimNeighbour {
    const known = this.#neighbours.get(name);
    if (known) return known;
    const partner = { agreement: this.#agreement(name), key: { id: '', key: '' } };
    const made = { name, agent: name, partner, closed: undefined, takesForwarded: false, kinds: [] };
    this.#neighbours.set(name, made);
    return made;
  }

  #offersOf(partner: string): readonly LentKind[] {
    const { kinds } = this.#neighbour(partner);
    return usable(kinds, partner, this.#agreement(partner).hops, this.#passing.around(partner));
  }

  get #waits(): boolean {
    return [...this.cm.attempts()].some(({ phase, client }) => phase === 'idle' && client === 'own');
  }

  #lendable(partner: string, passes = false) {
    const terms = this.#agreement(partner);
    const { parts } = idleMachines(this.#slots, terms);
    const { lent, borrowed } = this.#balance(partner).over('day', this.#flock.now);
    return lendable(terms, {
      lent: this.#lender.held(partner),
      idle: passes ? 1e9 : parts.length - this.#lender.promised(this.#slotsAt),
      borrowed: passes ? 0 : this.#borrower.cores(),
      ahead: lent - borrowed,
      now: this.#flock.now,
    });
  }

  #balance(partner: string): Balance {
    let found = this.balances.get(partner);
    if (!found) this.balances.set(partner, (found = new Balance()));
    return found;
  }

  /** What the gateway does every few seconds: counts, lists what is lent, shows what is offered. */
  look(): void {
    for (const { partner, startedAt, end } of this.#lender.jobs)
      if (startedAt !== undefined && !end) this.#balance(partner).add(this.#flock.now, this.#flock.lookEvery, 0);
    for (const { job, startedAt, phase } of this.#borrower.jobs)
      if (startedAt !== undefined && phase === 'committed')
        this.#balance(job.partner).add(this.#flock.now, 0, this.#flock.lookEvery);
    this.#slots = slotAds(this.cm);
    this.#slotsAt = this.#flock.now * 1000;
    this.#passing.tick();
    const waits = this.#waits;
    for (const [partner, terms] of this.agreements) {
      const neighbour = this.#neighbour(partner);
      const may = this.#lendable(partner);
      const { parts } = idleMachines(this.#slots, terms);
      const mayPass = this.#lendable(partner, true);
      const beyond = isRefused(mayPass) ? [] : this.#passing.offers(neighbour, mayPass.cores);
      const kinds = [...(isRefused(may) ? [] : availability(parts, may.cores)), ...beyond];
      const forwarded = terms.forwarded ? ({ forwarded: true } as const) : {};
      this.#flock.pools.find(({ name }) => name === partner)?.hear(this.name, { t: 'list', kinds, ...forwarded });
      const offers = new Map(this.#offersOf(partner).map((kind) => [workerOf(partner, kind), kind]));
      const shown = [...this.#shown.keys()].filter((worker) => worker.split('>')[0] === `@${partner}`);
      for (const worker of new Set([`@${partner}`, ...offers.keys(), ...shown]))
        this.#show(worker, terms, offers.get(worker), waits && terms.to, neighbour.takesForwarded);
    }
  }

  #show(worker: string, terms: Agreement, kind: LentKind | undefined, waits: boolean, passes: boolean): void {
    let running = NOTHING;
    for (const { job, phase } of this.#borrower.jobs)
      if (job.worker === worker && phase !== 'ended') running = plus(running, job.size);
    const size = { ...plus(kind?.all ?? NOTHING, running), diskKb: 1e9 };
    const way = worker.slice(1).replaceAll('>', ' ');
    const ad = {
      FlockPool: `"${way}"`,
      FlockWay: `"${way}"`,
      FlockPasses: String(passes && kind !== undefined),
      Rank: `${-1_000_000 - (kind?.path?.length ?? 0)}.0`,
      START: `(${waits && kind !== undefined} || ${PASSED_HERE}) && ${goingRequirements(terms, kind?.each)}`,
      ...kind?.ad,
    };
    const text = JSON.stringify([ad, size]);
    if (text === this.#shown.get(worker)) return;
    this.#shown.set(worker, text);
    if (this.cm.collector.get(worker)) this.cm.hear(worker, { t: 'ad', ad, size }, EMPTY);
    else this.#join(worker, size, ad);
  }

  get isDone(): boolean {
    return [...this.jobs.values()].every(({ endedAt }) => endedAt !== undefined);
  }
}

/** The slots that stand for a pool: those of a partner, or of one beyond it. */
function workerOf(partner: string, { path = [] }: LentKind): string {
  return `@${[partner, ...path.map(({ agent }) => agent)].join('>')}`;
}
