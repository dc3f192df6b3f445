import type { AttemptKey } from '../../job/ids.ts';
import type { Outcome } from '../../site/contract.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { type Attempt, submittedOf, unknownKey } from './attempts.ts';
import { WORKER_DIED, nodeFail } from './dead-workers.ts';
import { wholeOf } from './gangs/gangs.ts';
import { nodesOf } from './gangs/nodes.ts';
import type { AttemptRequest, FromClient, Reservation } from '../wire/client-wire.ts';
import type { Worker } from './collector.ts';
import { CentralManagerHearing } from './worker-messages.ts';
import type { Recovered } from './central-manager-journal.ts';
import type { CentralManagerPorts } from './central-manager-ports.ts';
import { CentralManagerTable } from './central-manager-state.ts';
import { accountOf } from './accounting.ts';
import type { AccountChange } from './priorities.ts';
import type { SharingRules } from './sharing-rules.ts';
import type { FromWorker, HeldAttempt, RunSpec } from '../wire/wire.ts';

/**
 * The pool's central manager: Collector, Negotiator and the Shadows' records. Its methods take messages from clients
 * and workers; the effects go out through the ports. A grant is on disk before the worker is told, so that no crash can
 * give an attempt to two workers.
 */
export class CentralManager {
  readonly #table: CentralManagerTable;
  readonly #hearing: CentralManagerHearing;
  readonly autoclusters: CentralManagerTable['autoclusters'];
  readonly collector: CentralManagerTable['collector'];
  readonly priorities: CentralManagerTable['priorities'];
  readonly deadWorkers: CentralManagerTable['deadWorkers'];
  readonly sharing: CentralManagerTable['sharing'];
  /** Why this machine's worker cannot start. */
  localTrouble: string | undefined;
  #order = 0;

  constructor(ports: CentralManagerPorts, recovered: Recovered) {
    const table = new CentralManagerTable(ports, recovered);
    this.#table = table;
    this.#hearing = new CentralManagerHearing(table);
    this.autoclusters = table.autoclusters;
    this.collector = table.collector;
    this.priorities = table.priorities;
    this.deadWorkers = table.deadWorkers;
    this.sharing = table.sharing;
    for (const { order } of recovered.attempts.values()) this.#order = Math.max(this.#order, order + 1);
  }

  /** How owners share the pool, from now on. */
  set rules(rules: SharingRules) {
    this.#table.rules = rules;
  }

  /** Changes owners' priorities. `done` is called when it is on disk: whether all of them are known. */
  changePriorities(changes: readonly AccountChange[], done: (known: boolean) => void): void {
    const known = changes.map((change) => this.priorities.change(change)).every(Boolean);
    this.#table.savePriorities(changes.flatMap(({ set, owner }) => (set === 'delete' ? [owner] : [])));
    this.#table.granting.wanting = true;
    this.#table.whenSaved(() => done(known));
  }

  /** Writes the priorities of owners to the journal. */
  savePriorities(): void {
    this.#table.savePriorities();
  }

  prepare(client: string, requests: readonly AttemptRequest[]): void {
    crashPoint('central-manager.before-prepare');
    for (const asked of requests) {
      const request = { ...asked, owner: accountOf(asked.ad, asked.owner, this.sharing.rules.groups) };
      const known = this.#table.attempts.get(request.key);
      // After the commit, a repeated PREPARE changes nothing; before, the latest description replaces the earlier one.
      if (known && known.phase !== 'prepared') continue;
      this.#table.attempts.set(request.key, this.#fresh(client, request, known?.order));
      this.#table.ports.journal.add({ r: 'p', client, request });
    }
    this.#table.whenSaved(() => crashPoint('central-manager.saved-prepare'));
  }

  /** `done` gets each key's outcome when the promise is on disk. */
  commit(keys: readonly AttemptKey[], done: (outcomes: [AttemptKey, Outcome][]) => void): void {
    crashPoint('central-manager.before-commit');
    const outcomes: [AttemptKey, Outcome][] = keys.map((key) => {
      const attempt = this.#table.attempts.get(key);
      if (!attempt || attempt.phase === 'withdrawn') return [key, unknownKey(key)];
      if (attempt.phase === 'prepared') {
        attempt.phase = 'idle';
        this.#table.enqueue(attempt);
      }
      return [key, { ok: true }];
    });
    this.#table.ports.journal.add({ r: 'c', keys });
    this.#table.whenSaved(() => {
      crashPoint('central-manager.saved-commit');
      done(outcomes);
    });
  }

  /**
   * Tasks kept by their client: they are prepared and committed at once, and only their grants are written to the
   * journal.
   */
  offer(client: string, requests: readonly AttemptRequest[]): void {
    for (const request of requests) {
      const known = this.#table.attempts.get(request.key);
      if (known) {
        this.#table.report(known);
        continue;
      }
      const attempt = this.#fresh(client, request);
      this.#table.attempts.set(request.key, attempt);
      const grant = this.#table.grants.get(request.key);
      if (grant) {
        this.#table.grants.delete(request.key);
        const { worker: instance, boot, claim, token } = grant;
        Object.assign(attempt, { phase: 'granted', worker: instance, boot, claim, token });
        this.sharing.starts(attempt);
        const worker = this.collector.get(instance);
        const held = worker?.held.get(request.key);
        if (worker?.connected) this.#hearing.reconcile(worker, attempt, held);
        else if (token !== undefined && this.deadWorkers.has(token))
          this.#table.end(attempt, { how: nodeFail(WORKER_DIED) });
      } else {
        attempt.phase = 'idle';
        this.autoclusters.enqueue(attempt);
        this.#table.granting.wanting = true;
      }
    }
    this.#table.settle();
  }

  base(id: string, spec: RunSpec): void {
    this.#table.granting.bases.set(id, spec);
  }

  baseOf(id: string): RunSpec | undefined {
    return this.#table.granting.bases.get(id);
  }

  /** Tasks that an earlier central manager granted and whose client has not named them since. */
  unnamed(): readonly { readonly key: AttemptKey; readonly client: string }[] {
    return [...this.#table.grants.values()].map(({ key, client = '' }) => ({ key, client }));
  }

  /** The whole state, for rewriting the journal. */
  snapshot(): Recovered {
    const { attempts, grants, reservations } = this.#table;
    return { attempts, grants, userPriorities: this.priorities.all(), reservations: [...reservations.values()] };
  }

  /** The number of attempts that are at a worker and have not ended. */
  get busy(): number {
    return [...this.#table.attempts.values()].filter(({ phase, worker }) => worker !== undefined && phase !== 'ended')
      .length;
  }

  /** All attempts of this client. */
  all(client: string): Attempt[] {
    return [...this.#table.attempts.values()].filter((attempt) => attempt.client === client && !attempt.node);
  }

  get(key: AttemptKey): Attempt | undefined {
    return this.#table.attempts.get(key);
  }

  attempts(): Iterable<Attempt> {
    return this.#table.attempts.values();
  }

  /**
   * Idle attempts are withdrawn at once; for the others the worker is asked, and the result is reported when it
   * answers.
   */
  cancel(keys: readonly AttemptKey[], how: 'remove' | 'vacate' | 'if-not-started', message: string): void {
    for (const key of keys) {
      const attempt = this.#table.attempts.get(key);
      if (!attempt || attempt.phase === 'ended' || attempt.phase === 'withdrawn') continue;
      if (attempt.nodes || attempt.node) {
        const part = attempt.node ? this.#table.attempts.get(attempt.node.part) : attempt;
        if (part) this.#table.gangs.cancel(part, how, message);
      } else if (attempt.worker === undefined) {
        if (how === 'vacate') continue;
        this.#table.dequeue(attempt);
        this.#table.withdraw(attempt);
      } else {
        attempt.cancelling = how;
        this.#table.send(attempt.worker, { t: 'cancel', key, how, message });
      }
    }
    this.#table.settle();
  }

  order(keys: readonly AttemptKey[], t: 'suspend' | 'resume' | 'checkpoint'): void {
    for (const key of keys) {
      const attempt = this.#table.attempts.get(key);
      if (attempt?.node) this.#table.gangs.order(attempt, t);
      else if (attempt?.worker !== undefined) this.#table.send(attempt.worker, { t, key });
    }
    this.#table.settle();
  }

  /** Deletes the attempts, here and at their workers. */
  forget(keys: readonly AttemptKey[], done: () => void): void {
    crashPoint('central-manager.before-forget');
    const byWorker = new Map<string, AttemptKey[]>();
    const toForget = (worker: string | undefined, key: AttemptKey) => {
      if (worker === undefined) return;
      byWorker.set(worker, [...(byWorker.get(worker) ?? []), key]);
      this.collector.get(worker)?.held.delete(key);
    };
    for (const key of keys) {
      const attempt = this.#table.attempts.get(key);
      const { worker } = attempt ?? this.#table.grants.get(key) ?? {};
      this.#table.attempts.delete(key);
      this.#table.grants.delete(key);
      this.sharing.ends(key);
      this.#table.arrived(key);
      if (attempt?.request.gang) for (const node of this.#table.gangs.forget(attempt)) toForget(node.worker, node.key);
      else if (attempt) this.autoclusters.dequeue(attempt);
      toForget(worker, key);
    }
    this.#table.ports.journal.add({ r: 'f', keys });
    this.#table.whenSaved(() => {
      crashPoint('central-manager.saved-forget');
      for (const [worker, gone] of byWorker) this.#table.ports.toWorker(worker, { t: 'forget', keys: gone });
      done();
    });
  }

  /** Its client has this much of its streams, and wants what comes then. */
  follow(key: AttemptKey, stdout: number, stderr: number, files?: readonly string[]): void {
    const asked = this.#table.attempts.get(key);
    const attempt = nodesOf(asked)[0] ?? asked;
    if (!attempt) return;
    attempt.followed = { stdout, stderr, ...(files && { files }) };
    this.#hearing.askToFollow(attempt);
    this.#table.settle();
  }

  /** Its client wants bytes of files that grow. Whatever gets lost is wanted again when the worker follows anew. */
  want(message: Extract<FromClient, { t: 'want' }>): void {
    const attempt = this.#table.attempts.get(message.key);
    if (attempt?.worker === undefined || !this.#hearing.streamsResults(attempt.worker)) return;
    this.#table.send(attempt.worker, message);
    this.#table.settle();
  }

  /** A worker was admitted: reconciles what it holds with what was granted to it. */
  join(worker: Worker, held: readonly HeldAttempt[]): void {
    this.#hearing.join(worker, held);
  }

  /** A worker's connection ended; its jobs continue. */
  leave(instance: string): void {
    this.#hearing.leave(instance);
  }

  /**
   * The workers admitted by this token have died, as reported by whoever watches them: their attempts ended with them.
   */
  declareDead(token: string, message: string): void {
    this.#hearing.declareDead(token, message);
  }

  hear(instance: string, message: FromWorker, bytes: Buffer): void {
    this.#hearing.hear(instance, message, bytes);
  }

  /** Bytes of a followed stream, up to `end`, came from a worker; returns the attempt if it was granted to that worker. */
  streamed(instance: string, key: AttemptKey, stream: 'stdout' | 'stderr', end: number): Attempt | undefined {
    const attempt = this.#hearing.streamed(instance, key, stream, end);
    return attempt && wholeOf(attempt, (one) => this.#table.attempts.get(one));
  }

  /** The parallel jobs, and what the dedicated scheduler says about those that wait. */
  get gangs(): CentralManagerTable['gangs'] {
    return this.#table.gangs;
  }

  /** A job of the pool by a node's attempt: the attempt that its client knows. */
  whole(attempt: Attempt): Attempt {
    return wholeOf(attempt, (key) => this.#table.attempts.get(key));
  }

  reservations(): Iterable<Reservation> {
    return this.#table.reservations.values();
  }

  /** Sets machines aside, or no more. `done` is called when that is on disk. */
  reserve(make: Reservation | undefined, drop: string | undefined, done: () => void): void {
    const { reservations, ports, granting } = this.#table;
    if (make) {
      reservations.set(make.id, make);
      ports.journal.add({ r: 'reserve', reservation: make });
    }
    if (drop !== undefined && reservations.delete(drop)) ports.journal.add({ r: 'unreserve', id: drop });
    granting.wanting = true;
    this.#table.whenSaved(done);
  }

  /** A worker that was silent takes jobs again. */
  negotiate(): void {
    this.#table.granting.wanting = true;
    this.#table.settle();
  }

  /** Ends the attempts whose leases have expired. */
  tick(): void {
    this.#hearing.tick();
  }

  /** Calls back when everything promised so far is on disk. */
  whenSaved(call: () => void): void {
    this.#table.whenSaved(call);
  }

  #fresh(client: string, request: AttemptRequest, order = this.#order++): Attempt {
    const submitted = submittedOf(request.ad) ?? this.#table.ports.now() / 1000;
    const kind = this.autoclusters.of(request);
    return { key: request.key, client, request, kind, order, submitted, phase: 'prepared' };
  }
}
