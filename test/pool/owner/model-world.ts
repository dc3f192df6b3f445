import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttemptKey } from '../../../src/job/ids.ts';
import { CentralManager } from '../../../src/pool/central-manager/central-manager.ts';
import { type CentralManagerEntry, recover } from '../../../src/pool/central-manager/central-manager-journal.ts';
import type { FromCentralManager, FromWorker } from '../../../src/pool/wire/wire.ts';
import type { Report } from '../../../src/site/contract.ts';
import { seeded } from '../../seeded.ts';
import { Died, SIZE, SPEC, Station } from './model-station.ts';

/*
 * Stations with owners who come and go, under the real central manager and the real policy of each worker, by a clock of
 * our own. Workers die at their orders and between them, the central manager dies and starts again from its journal. Only
 * the programs are a model: they work, stand still, and save their work when they are asked to end.
 */

/** An owner's key is followed by a stop within this time, while there is a worker. Seconds. */
const SOON = 6;
/**
 * How long after the owner's last key nothing may run, in seconds: a little less than KeyboardBusy says, and for `desktop`,
 * which then waits for ContinueIdleTime, than that. A worker that forgot the suspension would resume too soon.
 */
const QUIET = { hunter: 55, 'hunter-kill': 55, desktop: 95 } as const;
/** A worker or central manager that died is replaced after at most this time, in seconds. */
const AWAY = 5;
const STATIONS = 4;
const JOBS = 5;
const NONE = Buffer.alloc(0);

interface Counted {
  returns: number;
  workerDeaths: number;
  managerDeaths: number;
  done: number;
  vacated: number;
  longest: number;
}

export class World {
  /** What must not happen, and did. */
  readonly wrong: string[] = [];
  now = 1_000_000;
  readonly counted: Counted = { returns: 0, workerDeaths: 0, managerDeaths: 0, done: 0, vacated: 0, longest: 0 };
  readonly #random: () => number;
  readonly #dir = mkdtempSync(join(tmpdir(), 'returns-'));
  readonly #journal: CentralManagerEntry[] = [];
  readonly #stations: Station[] = [];
  /** Until when the worker of each station, and the central manager, are away. */
  readonly #away = new Map<number, number>();
  #managerAway = 0;
  /** Until when each owner is there. */
  readonly #here = new Map<number, number>();
  readonly #backAt = new Map<number, number>();
  #manager: CentralManager | undefined;
  readonly #post: (() => void)[] = [];
  #jobs = 0;
  /** What each job has saved, and how long it has to work. */
  readonly #saved = new Map<string, number>();
  readonly #long = new Map<string, number>();
  readonly #spent = new Map<string, number>();
  readonly #ended = new Map<AttemptKey, string>();
  readonly #policy: 'hunter' | 'desktop' | 'hunter-kill';

  constructor(seed: number, policy: 'hunter' | 'desktop' | 'hunter-kill') {
    this.#random = seeded(seed);
    this.#policy = policy;
    for (let n = 0; n < STATIONS; n++) {
      const dir = join(this.#dir, String(n));
      mkdirSync(dir);
      this.#stations.push(
        new Station({
          name: `w${n}`,
          dir,
          policy,
          random: this.#random,
          clock: () => this.now,
          say: (message) => this.#hear(n, message),
          workOf: (key) => (this.#long.get(jobOf(key)) ?? 0) - (this.#saved.get(jobOf(key)) ?? 0),
          dies: 0.03,
        }),
      );
    }
    this.#openManager();
    for (let n = 0; n < JOBS; n++) this.#submit();
  }

  get #unfinished(): string[] {
    return [...this.#long.keys()].filter((job) => (this.#saved.get(job) ?? 0) < (this.#long.get(job) ?? 0));
  }

  #should(holds: boolean, otherwise: string): void {
    if (!holds) this.wrong.push(otherwise);
  }

  async run(returns: number): Promise<void> {
    while (this.counted.returns < returns) await this.second(true);
    for (let n = 0; n < 20_000 && this.#unfinished.length > 0; n++) await this.second(false);
    for (let n = 0; n < 2 * AWAY; n++) await this.second(false);
    this.#should(this.#unfinished.length === 0, `lost: ${this.#unfinished.join()}`);
    const left = this.#stations.flatMap(({ programs }) => [...programs.keys()]);
    this.#should(left.length === 0, `left at stations: ${left.join()}`);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async second(busy: boolean): Promise<void> {
    this.now += 1;
    // The central manager negotiates in a turn of its own.
    await new Promise((resume) => setImmediate(resume));
    for (const call of this.#post.splice(0)) call();
    for (const [n, station] of this.#stations.entries()) {
      this.#owner(n, station, busy);
      this.#worker(n, station, busy);
    }
    if (this.#manager && busy && this.#random() < 0.001) {
      this.counted.managerDeaths += 1;
      this.#manager = undefined;
      this.#post.length = 0;
      this.#managerAway = this.now + Math.ceil(this.#random() * AWAY);
    }
    if (!this.#manager && this.now >= this.#managerAway) this.#openManager();
    this.#manager?.tick();
    if (busy) while (this.#unfinished.length < JOBS) this.#submit();
  }

  #owner(n: number, station: Station, busy: boolean): void {
    const here = this.now < (this.#here.get(n) ?? 0);
    if (here) {
      if (this.#random() < 0.5) station.key = this.now;
    } else if (busy && this.#random() < 0.003) {
      this.counted.returns += 1;
      const long = this.#random() < 0.5 ? 60 : 700;
      this.#here.set(n, this.now + Math.ceil(this.#random() * long));
      this.#backAt.set(n, this.now);
      station.key = this.now;
    }
  }

  #worker(n: number, station: Station, busy: boolean): void {
    const away = this.#away.get(n);
    if (away !== undefined && this.now >= away) {
      this.#away.delete(n);
      this.#attempt(n, station, () => {
        station.open();
        this.#join(n, station);
        station.control?.look();
      });
    }
    if (station.control && busy && this.#random() < 0.003) this.#die(n, station);
    for (const { key } of station.tick()) {
      this.#spent.set(jobOf(key), (this.#spent.get(jobOf(key)) ?? 0) + 1);
      // Nothing runs under the owner's hands, once there was a worker for long enough to see them.
      const since = Math.max(this.#backAt.get(n) ?? 0, this.#openedAt.get(n) ?? 0);
      const late = this.now - station.key < QUIET[this.#policy] && station.control ? this.now - since : 0;
      this.counted.longest = Math.max(this.counted.longest, late);
      this.#should(late <= SOON, `${key} ran ${late} s after ${since}`);
    }
    this.#attempt(n, station, () => station.look());
  }
  readonly #openedAt = new Map<number, number>();

  #attempt(n: number, station: Station, act: () => void): void {
    try {
      act();
    } catch (thrown) {
      if (!(thrown instanceof Died)) throw thrown;
      this.#die(n, station);
    }
  }

  #die(n: number, station: Station): void {
    this.counted.workerDeaths += 1;
    station.close();
    this.#manager?.leave(`w${n}`);
    this.#away.set(n, this.now + Math.ceil(this.#random() * AWAY));
  }

  #openManager(): void {
    const manager: CentralManager = new CentralManager(
      {
        journal: { add: (entry) => this.#journal.push(structuredClone(entry)), whenSaved: (call) => call() },
        toWorker: (worker, message) => this.#send(manager, Number(worker.slice(1)), message),
        toClient: (_, report) => this.#post.push(() => this.#report(manager, report)),
        now: () => this.now * 1000,
        clock: () => this.now * 1000,
        log: () => undefined,
      },
      recover(this.#journal),
    );
    this.#manager = manager;
    for (const [n, station] of this.#stations.entries()) if (station.control) this.#join(n, station);
    for (const attempt of manager.all('c')) {
      manager.commit([attempt.key], () => undefined);
      if (attempt.phase === 'ended' && attempt.ending)
        this.#post.push(() => this.#over(manager, attempt.key, attempt.ending?.how));
    }
  }

  #join(n: number, station: Station): void {
    this.#openedAt.set(n, this.now);
    const manager = this.#manager;
    if (!manager) return;
    const about = { instance: `w${n}`, token: `t${n}`, site: 's', boot: 'b', size: SIZE };
    manager.join(manager.collector.make(about, { Requirements: 'true' }, `w${n}`, `w${n}`), station.held());
  }

  #send(manager: CentralManager, n: number, message: FromCentralManager): void {
    this.#post.push(() => {
      if (this.#manager === manager) this.#stations[n]?.take(message);
    });
  }

  #hear(n: number, message: FromWorker): void {
    const manager = this.#manager;
    this.#post.push(() => {
      if (this.#manager === manager && this.#stations[n]?.control) manager?.hear(`w${n}`, message, NONE);
    });
  }

  #submit(): void {
    const job = `a.${(this.#jobs += 1)}.0`;
    this.#long.set(job, 200 + Math.floor(this.#random() * 2000));
    this.#start(job, 1);
  }

  #start(job: string, attempt: number): void {
    const key: AttemptKey = `${job}.${attempt}` as AttemptKey;
    const manager = this.#manager;
    if (!manager) return void this.#post.push(() => this.#start(job, attempt));
    const ad = { Requirements: 'true', Rank: '0', Owner: '"me"' };
    manager.prepare('c', [{ key, owner: 'me', ad, size: SIZE, prio: 0, lease: 1e6, spec: SPEC }]);
    manager.commit([key], () => undefined);
  }

  #report(manager: CentralManager, report: Report): void {
    if (this.#manager !== manager) return;
    if (report.is === 'lost') throw new Error(`${report.key} is lost: ${report.why}`);
    if (report.is === 'ended') this.#over(manager, report.key, report.how);
  }

  #over(manager: CentralManager, key: AttemptKey, how: Extract<Report, { is: 'ended' }>['how'] | undefined): void {
    if (this.#manager !== manager || !how) return;
    const job = jobOf(key);
    const first = !this.#ended.has(key);
    if (first) this.#ended.set(key, how.kind);
    const program = this.#stations.map(({ programs }) => programs.get(key)).find((one) => one !== undefined);
    manager.forget([key], () => undefined);
    if (!first) return;
    const saves = how.kind === 'exited' || (how.kind === 'by-site' && how.yielded === true);
    if (saves) this.#saved.set(job, (this.#saved.get(job) ?? 0) + (program?.worked ?? 0));
    if (how.kind === 'exited') {
      this.counted.done += 1;
      // No work was lost or done twice, unless its policy kills.
      const spent = this.#spent.get(job) ?? 0;
      const long = this.#long.get(job) ?? 0;
      const exact = this.#policy === 'hunter-kill' ? spent >= long : spent === long;
      this.#should(exact && this.#saved.get(job) === long, `${key} worked ${spent} s of ${long}`);
      return;
    }
    this.#should(how.kind === 'by-site' && how.cause === 'preempted', `${key} ended as ${JSON.stringify(how)}`);
    this.counted.vacated += 1;
    this.#start(job, Number(key.split('.')[3]) + 1);
  }
}

function jobOf(key: string): string {
  return key.slice(0, key.lastIndexOf('.'));
}
