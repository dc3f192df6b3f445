import type { AttemptKey } from '../../job/ids.ts';
import type { Ending } from '../../site/contract.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { type Attempt, reportOf } from './attempts.ts';
import { DeadWorkers } from './dead-workers.ts';
import { Collector } from './collector.ts';
import { endedEntry, isKeptByClient, type Recovered, ungrant } from './central-manager-journal.ts';
import type { CentralManagerPorts } from './central-manager-ports.ts';
import type { Reservation } from '../wire/client-wire.ts';
import { Gangs, INPUT } from './gangs/gangs.ts';
import { Granting } from './granting.ts';
import { Autoclusters } from './autoclusters.ts';
import { Priorities } from './priorities.ts';
import { Sharing } from './sharing.ts';
import { StartThrottle } from './throttle.ts';
import { rulesOf, type SharingRules } from './sharing-rules.ts';
import type { FromCentralManager } from '../wire/wire.ts';

/**
 * The central manager's table of attempts and their transitions, each of which is written to the journal before it is
 * announced.
 */
export class CentralManagerTable {
  readonly ports: CentralManagerPorts;
  readonly attempts = new Map<AttemptKey, Attempt>();
  readonly grants: Recovered['grants'];
  readonly autoclusters = new Autoclusters();
  readonly collector: Collector;
  readonly priorities: Priorities;
  readonly deadWorkers: DeadWorkers;
  readonly sharing: Sharing;
  readonly throttle: StartThrottle;
  readonly granting: Granting;
  readonly gangs: Gangs;
  /** Machines set aside for some time. */
  readonly reservations = new Map<string, Reservation>();
  #out: (() => void)[] = [];
  #settling = false;

  constructor(ports: CentralManagerPorts, { attempts, grants, userPriorities, reservations }: Recovered) {
    this.ports = ports;
    this.grants = grants;
    this.collector = new Collector(ports, this.autoclusters.significance);
    this.priorities = new Priorities(
      () => ports.clock() / 1000,
      userPriorities,
      () => ports.now() / 1000,
    );
    this.deadWorkers = new DeadWorkers(ports, this.collector, this.priorities);
    this.sharing = new Sharing(this.priorities, () => this.collector.capacity().cpus);
    this.throttle = new StartThrottle(() => ports.clock() / 1000);
    this.granting = new Granting({
      ports,
      autoclusters: this.autoclusters,
      collector: this.collector,
      priorities: this.priorities,
      sharing: this.sharing,
      throttle: this.throttle,
      wake: () => this.#negotiateSoon(),
      attemptOf: (key) => this.attempts.get(key),
      later: (call) => this.#out.push(call),
      dedicated: {
        schedule: () => this.gangs.schedule(),
        hasWork: () => this.gangs.hasWork,
        spare: (offers, seconds) => this.gangs.spare(offers, seconds),
        holdsOf: (instance) => this.gangs.holdsOf(instance),
        owners: () => this.gangs.owners(),
        left: (worker, size) => this.gangs.left(worker, size),
      },
    });
    this.gangs = new Gangs(this);
    for (const one of reservations ?? []) this.reservations.set(one.id, one);
    for (const attempt of attempts.values()) {
      this.attempts.set(attempt.key, attempt);
      attempt.kind = this.autoclusters.of(attempt.request);
      if (attempt.phase === 'idle') this.enqueue(attempt);
      else if (attempt.worker !== undefined && attempt.phase !== 'ended') this.sharing.starts(attempt);
    }
    this.gangs.recover(attempts.values());
  }

  /** It waits for a worker, or for as many as it needs. */
  enqueue(attempt: Attempt): void {
    if (attempt.request.gang) this.gangs.enqueue(attempt);
    else this.autoclusters.enqueue(attempt);
    this.granting.wanting = true;
  }

  dequeue(attempt: Attempt): void {
    if (attempt.request.gang) this.gangs.dequeue(attempt);
    else this.autoclusters.dequeue(attempt);
  }

  set rules(rules: SharingRules) {
    this.priorities.rules = rules.priorities;
    this.sharing.rules = rules;
    this.throttle.rules = rules.throttle;
    for (const expr of rulesOf(rules)) this.autoclusters.significance.learnRule(expr);
    this.#negotiateSoon();
  }

  #negotiateSoon(): void {
    this.granting.wanting = true;
    this.settle();
  }

  /** It started, or is at no worker any more: another may send its inputs. */
  arrived(key: AttemptKey): void {
    if (this.throttle.arrived(key)) this.#negotiateSoon();
  }

  /** Writes what a restarted central manager needs in order to know the priorities of owners. */
  savePriorities(deleted: readonly string[] = []): void {
    const userPriorities = this.priorities.changes();
    if (userPriorities.length === 0 && deleted.length === 0) return;
    this.ports.journal.add({ r: 'o', userPriorities, ...(deleted.length > 0 ? { deleted } : {}) });
  }

  end(attempt: Attempt, ending: Ending): void {
    crashPoint('central-manager.before-end');
    attempt.ending = ending;
    attempt.phase = 'ended';
    this.sharing.ends(attempt.key);
    this.arrived(attempt.key);
    if (ending.startedAt !== undefined) attempt.startedAt = ending.startedAt;
    const { kind, request } = attempt;
    if (
      kind &&
      !attempt.node &&
      ending.startedAt !== undefined &&
      ending.endedAt !== undefined &&
      ending.how.kind !== 'by-site'
    )
      this.autoclusters.learn(kind, ending.endedAt - ending.startedAt);
    if (!isKeptByClient(request.spec)) this.ports.journal.add(endedEntry(attempt, ending));
    this.#out.push(() => crashPoint('central-manager.saved-end'));
    this.report(attempt);
    this.granting.next(attempt);
  }

  /** It never ran there: it waits for another worker. */
  again(attempt: Attempt, message: string): void {
    if (attempt.node) return this.gangs.never(attempt, message);
    ungrant(attempt);
    this.sharing.ends(attempt.key);
    this.arrived(attempt.key);
    delete attempt.cancelling;
    attempt.why = message;
    this.ports.journal.add({ r: 'u', key: attempt.key });
    this.enqueue(attempt);
    this.report(attempt);
  }

  withdraw(attempt: Attempt): void {
    if (attempt.node) return this.gangs.never(attempt, 'it was cancelled');
    attempt.phase = 'withdrawn';
    this.sharing.ends(attempt.key);
    this.arrived(attempt.key);
    this.ports.journal.add({ r: 'w', key: attempt.key });
    this.report(attempt);
  }

  /** Something that it needs is missing: it must be prepared again. */
  lose(attempt: Attempt, why: string): void {
    if (attempt.node) return this.gangs.never(attempt, `${INPUT}${why}`);
    this.attempts.delete(attempt.key);
    this.sharing.ends(attempt.key);
    this.arrived(attempt.key);
    this.ports.journal.add({ r: 'f', keys: [attempt.key] });
    this.#out.push(() => this.ports.toClient(attempt.client, { key: attempt.key, is: 'lost', why }, attempt));
  }

  move(attempt: Attempt, phase: 'running' | 'suspended'): void {
    attempt.phase = phase;
    this.report(attempt);
  }

  report(attempt: Attempt): void {
    if (attempt.node) return this.gangs.changed(attempt);
    this.#out.push(() => this.ports.toClient(attempt.client, reportOf(attempt), attempt));
  }

  /** Defers a call until what was promised is on disk. */
  later(call: () => void): void {
    this.#out.push(call);
  }

  send(worker: string, message: FromCentralManager): void {
    this.#out.push(() => this.ports.toWorker(worker, message));
  }

  /** Calls back when everything promised so far is on disk. */
  whenSaved(call: () => void): void {
    this.#out.push(call);
    this.settle();
  }

  /** Batches everything that arrived in one turn: negotiates, writes to disk, and then sends the messages. */
  settle(): void {
    if (this.#settling) return;
    this.#settling = true;
    setImmediate(() => {
      this.#settling = false;
      this.gangs.advance();
      this.granting.negotiate();
      const out = this.#out;
      this.#out = [];
      this.ports.journal.whenSaved(() => {
        for (const call of out) call();
      });
    });
  }
}
