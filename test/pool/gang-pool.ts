import type { AttemptKey } from '../../src/job/ids.ts';
import { parseAttemptKey } from '../../src/job/ids.ts';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import {
  type CentralManagerEntry,
  compacted,
  recover,
} from '../../src/pool/central-manager/central-manager-journal.ts';
import { SHARING_RULES } from '../../src/pool/central-manager/sharing-rules.ts';
import type { AttemptRequest, GangRequest } from '../../src/pool/wire/client-wire.ts';
import type { FromCentralManager, FromWorker, HeldAttempt } from '../../src/pool/wire/wire.ts';
import type { Ending, Report } from '../../src/site/contract.ts';
import { JUST_TRUE } from './just-true.ts';

interface Held {
  claim: string;
  is: 'staging' | 'ready' | 'running' | 'suspended' | 'ended';
  /** Who wants it suspended. */
  user?: boolean;
  owner?: boolean;
  ending?: Ending;
}

/** A worker as the central manager sees one: what it holds survives the central manager. */
class Worker {
  readonly name: string;
  readonly cpus: number;
  readonly held = new Map<AttemptKey, Held>();
  boot = 'b';
  connected = true;

  constructor(name: string, cpus: number) {
    this.name = name;
    this.cpus = cpus;
  }

  view(): HeldAttempt[] {
    return [...this.held].map(([key, { is, ending }]) => ({
      key,
      is: is === 'ready' ? 'staging' : is,
      ...(ending && { ending }),
    }));
  }
}

/** A central manager whose journal survives it, workers that obey, and a ledger of every program that was started. */
export class GangPool {
  now = 1_000_000;
  readonly workers: Worker[];
  readonly journal: CentralManagerEntry[] = [];
  readonly reports: Report[] = [];
  /** Every entry that was ever saved. */
  readonly saved: CentralManagerEntry[] = [];
  /** Every start of a node's program: its key and claim. */
  readonly ledger: string[] = [];
  centralManager: CentralManager;
  /** Messages on their way; a crash of the central manager loses them. */
  #inbox: (() => void)[] = [];
  #unsaved: CentralManagerEntry[] = [];
  #calls: (() => void)[] = [];

  constructor(cpus: readonly number[], ad: Readonly<Record<string, string>> = {}) {
    this.workers = cpus.map((one, i) => new Worker(`w${i}`, one));
    this.ad = ad;
    this.centralManager = this.#open();
  }

  readonly ad: Readonly<Record<string, string>>;

  #open(): CentralManager {
    let open = true;
    const alive = () => open;
    const made = new CentralManager(
      {
        journal: {
          add: (entry) => void (alive() && this.#unsaved.push(entry)),
          whenSaved: (call) => void (alive() && this.#calls.push(call)),
        },
        toWorker: (name, message) => void (alive() && this.#toWorker(name, message)),
        toClient: (_, report) => void (alive() && this.reports.push(report)),
        now: () => this.now,
        clock: () => this.now,
        log: () => undefined,
      },
      recover(this.journal),
    );
    made.rules = SHARING_RULES;
    this.#end = () => {
      open = false;
    };
    return made;
  }

  #end: () => void = () => undefined;

  join(worker: Worker): void {
    const { collector } = this.centralManager;
    const size = { cpus: worker.cpus, memoryMb: 1000 * worker.cpus, diskKb: 1e6, gpus: 0 };
    const about = { instance: worker.name, token: worker.name, site: 's', boot: worker.boot, size };
    const ad = { Requirements: 'true', ...this.ad };
    this.centralManager.join(collector.make(about, ad, worker.name, worker.name), worker.view());
    for (const [key, { owner }] of worker.held) if (owner) this.#tellSlot(worker, key, true);
  }

  /** The central manager is killed: what it had not saved and all messages are lost; the next one recovers. */
  async crash(): Promise<void> {
    this.#end();
    this.#unsaved = [];
    this.#calls = [];
    this.#inbox = [];
    await turns();
    // As on disk: only what JSON keeps.
    const kept = [...compacted(recover(JSON.parse(JSON.stringify(this.journal)) as CentralManagerEntry[]))];
    this.journal.splice(0, this.journal.length, ...kept);
    this.centralManager = this.#open();
    for (const worker of this.workers) if (worker.connected) this.join(worker);
  }

  /** One small step of everything that is on its way; `false` if nothing is. */
  async step(): Promise<boolean> {
    await turns();
    if (this.#unsaved.length > 0 || this.#calls.length > 0) {
      const entries = this.#unsaved.splice(0);
      this.saved.push(...entries);
      this.journal.push(...entries);
      for (const call of this.#calls.splice(0)) call();
      return true;
    }
    const next = this.#inbox.shift();
    next?.();
    return next !== undefined;
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 10_000; turn++) if (!(await this.step())) return;
    throw new Error('it never settles');
  }

  #toWorker(name: string, message: FromCentralManager): void {
    const worker = this.workers.find((one) => one.name === name);
    if (worker?.connected) this.#inbox.push(() => worker.connected && this.#obey(worker, message));
  }

  #obey(worker: Worker, message: FromCentralManager): void {
    const say = (said: FromWorker) => this.#say(worker, said);
    if (message.t === 'forget') for (const key of message.keys) worker.held.delete(key);
    if (!('key' in message)) return;
    const { key } = message;
    const held = worker.held.get(key);
    if (message.t === 'start') {
      if (held) return;
      worker.held.set(key, { claim: message.claim, is: 'staging' });
      if (message.waits !== true) return this.start(worker, key);
      // Staging takes its time.
      this.#inbox.push(() => {
        const staged = worker.held.get(key);
        if (staged?.is !== 'staging') return;
        staged.is = 'ready';
        say({ t: 'ready', key, claim: staged.claim });
      });
    } else if (message.t === 'go') {
      if (held?.claim !== message.claim) return say({ t: 'gone', key, why: 'never-started', message: 'given up' });
      if (held.is === 'ready' || held.is === 'staging') this.start(worker, key);
    } else if (message.t === 'suspend' || message.t === 'resume') {
      this.still(worker, key, 'user', message.t === 'suspend');
    } else if (message.t === 'cancel') {
      if (!held || held.is === 'staging' || held.is === 'ready') {
        worker.held.delete(key);
        return say({ t: 'gone', key, why: 'cancelled', message: message.message });
      }
      if (held.is === 'running' || held.is === 'suspended') {
        const cause = message.how === 'vacate' ? 'preempted' : 'cancelled';
        this.end(worker, key, { kind: 'by-site', cause, message: message.message });
      } else say({ t: 'ended', key, ending: held.ending ?? { how: { kind: 'exited', code: 0 } } });
    }
  }

  start(worker: Worker, key: AttemptKey): void {
    const held = worker.held.get(key);
    if (!held) return;
    held.is = 'running';
    this.ledger.push(`${key} ${held.claim}`);
    const at = this.now / 1000;
    this.#inbox.push(() => this.centralManager.hear(worker.name, { t: 'started', key, at }, Buffer.alloc(0)));
  }

  /** A run's user, or the owner of its machine, wants it suspended, or no more; as in the worker's suspending.ts. */
  still(worker: Worker, key: AttemptKey, by: 'user' | 'owner', still: boolean): void {
    const held = worker.held.get(key);
    if (held?.is !== 'running' && held?.is !== 'suspended') return;
    held[by] = still;
    if (by === 'owner') this.#tellSlot(worker, key, still);
    const is = held.user || held.owner ? 'suspended' : 'running';
    if (held.is === is) return;
    held.is = is;
    const t = is === 'running' ? 'resumed' : 'suspended';
    this.#say(worker, { t, key });
  }

  #tellSlot(worker: Worker, key: AttemptKey, still: boolean): void {
    const activity = still ? 'Suspended' : 'Busy';
    this.#say(worker, { t: 'slot', key, state: 'Claimed', activity, enteredState: 0, enteredActivity: 0 });
  }

  #say(worker: Worker, said: FromWorker): void {
    this.#inbox.push(() => worker.connected && this.centralManager.hear(worker.name, said, Buffer.alloc(0)));
  }

  end(worker: Worker, key: AttemptKey, how: Ending['how']): void {
    const held = worker.held.get(key);
    if (held?.is !== 'running' && held?.is !== 'suspended') return;
    held.is = 'ended';
    const ending: Ending = { how, startedAt: this.now / 1000, endedAt: this.now / 1000 };
    held.ending = ending;
    this.#inbox.push(() => this.centralManager.hear(worker.name, { t: 'ended', key, ending }, Buffer.alloc(0)));
  }

  /** Programs that run now, or are suspended. */
  running(which: 'running' | 'suspended' = 'running'): { worker: Worker; key: AttemptKey; node: number | undefined }[] {
    return this.workers.flatMap((worker) =>
      [...worker.held].flatMap(([key, { is }]) =>
        is === which ? [{ worker, key, node: parseAttemptKey(key)?.node }] : [],
      ),
    );
  }

  /** A worker dies with what it runs; another starts in its place. */
  die(worker: Worker): void {
    worker.held.clear();
    worker.boot = `${worker.boot}'`;
    this.centralManager.leave(worker.name);
    this.join(worker);
  }

  submit(key: AttemptKey, count: number, gang: Partial<GangRequest> = {}, more: Partial<AttemptRequest> = {}): void {
    const request: AttemptRequest = {
      key,
      owner: 'me',
      ad: { Requirements: 'true', Rank: '0', RequestCpus: '1', Owner: '"me"', QDate: String(this.now / 1000) },
      size: { cpus: 1, memoryMb: 100, diskKb: 0, gpus: 0 },
      prio: 0,
      lease: 2400,
      spec: JUST_TRUE,
      ...(count > 0 ? { gang: { count, procs: 1, ...gang } } : {}),
      ...more,
    };
    this.centralManager.prepare('c', [request]);
    this.centralManager.commit([key], () => undefined);
  }

  tick(seconds: number): void {
    this.now += seconds * 1000;
    this.centralManager.tick();
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resume) => setImmediate(resume));
}
