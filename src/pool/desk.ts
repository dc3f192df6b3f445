import type { AttemptKey } from '../job/ids.ts';
import type { Ending, Outcome } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Attempt, type AttemptRequest, reportOf, unknownKey } from './attempts.ts';
import { Burials, BURIED, nodeFail } from './burials.ts';
import { Collector, slotName, type Worker } from './collector.ts';
import { endedEntry, isKeptByClient, type Recovered, ungrant } from './desk-journal.ts';
import type { DeskPorts } from './desk-ports.ts';
import { Granting } from './granting.ts';
import { Kinds } from './kinds.ts';
import { LEASE_OVER, overdue } from './leases.ts';
import { Priorities } from './priorities.ts';
import { findingOf } from './reconcile.ts';
import type { FromDesk, FromWorker, HeldAttempt, RunSpec } from './wire.ts';

/**
 * The pool's one table: Collector, Negotiator and the Shadows' records together. Plain methods take what clients and
 * workers say; what follows from it goes out through the ports. A grant is on disk before the worker hears of it, so
 * that no crash can give an attempt to two.
 */
export class Desk {
  readonly #ports: DeskPorts;
  readonly #attempts = new Map<AttemptKey, Attempt>();
  readonly #grants: Recovered['grants'];
  readonly kinds = new Kinds();
  readonly collector: Collector;
  readonly priorities: Priorities;
  readonly burials: Burials;
  /** Why this machine's worker cannot start. */
  localTrouble: string | undefined;
  readonly #granting: Granting;
  #out: (() => void)[] = [];
  #settling = false;
  #order = 0;

  constructor(ports: DeskPorts, recovered: Recovered) {
    this.#ports = ports;
    this.#grants = recovered.grants;
    this.collector = new Collector(ports, this.kinds.significance);
    this.priorities = new Priorities(() => ports.clock() / 1000, recovered.standings);
    this.burials = new Burials(ports, this.collector, this.priorities);
    this.#granting = new Granting({
      ports,
      kinds: this.kinds,
      collector: this.collector,
      priorities: this.priorities,
      attemptOf: (key) => this.#attempts.get(key),
      later: (call) => this.#out.push(call),
    });
    for (const attempt of recovered.attempts.values()) {
      this.#attempts.set(attempt.key, attempt);
      attempt.kind = this.kinds.of(attempt.request);
      this.#order = Math.max(this.#order, attempt.order + 1);
      if (attempt.phase === 'idle') this.kinds.enqueue(attempt);
    }
  }

  prepare(client: string, requests: readonly AttemptRequest[]): void {
    crashPoint('desk.before-prepare');
    for (const request of requests) {
      const known = this.#attempts.get(request.key);
      // A repeated PREPARE changes nothing once it is committed; before, the last description holds.
      if (known && known.phase !== 'prepared') continue;
      this.#attempts.set(request.key, this.#fresh(client, request, known?.order));
      this.#ports.journal.add({ r: 'p', client, request });
    }
    this.whenSaved(() => crashPoint('desk.saved-prepare'));
  }

  /** Each key's outcome is called back when the promise is on disk. */
  commit(keys: readonly AttemptKey[], done: (outcomes: [AttemptKey, Outcome][]) => void): void {
    crashPoint('desk.before-commit');
    const outcomes: [AttemptKey, Outcome][] = keys.map((key) => {
      const attempt = this.#attempts.get(key);
      if (!attempt || attempt.phase === 'withdrawn') return [key, unknownKey(key)];
      if (attempt.phase === 'prepared') {
        attempt.phase = 'idle';
        this.kinds.enqueue(attempt);
        this.#granting.wanting = true;
      }
      return [key, { ok: true }];
    });
    this.#ports.journal.add({ r: 'c', keys });
    this.whenSaved(() => {
      crashPoint('desk.saved-commit');
      done(outcomes);
    });
  }

  /** Tasks that their client keeps: prepared and committed at once, and written down only when they are granted. */
  offer(client: string, requests: readonly AttemptRequest[]): void {
    for (const request of requests) {
      const known = this.#attempts.get(request.key);
      if (known) {
        this.#report(known);
        continue;
      }
      const attempt = this.#fresh(client, request);
      this.#attempts.set(request.key, attempt);
      const grant = this.#grants.get(request.key);
      if (grant) {
        this.#grants.delete(request.key);
        const { worker: instance, boot, claim, token } = grant;
        Object.assign(attempt, { phase: 'granted', worker: instance, boot, claim, token });
        const worker = this.collector.get(instance);
        const held = worker?.held.get(request.key);
        if (worker?.connected) this.#reconcile(worker, attempt, held);
        else if (token !== undefined && this.burials.has(token)) this.#end(attempt, { how: nodeFail(BURIED) });
      } else {
        attempt.phase = 'idle';
        this.kinds.enqueue(attempt);
        this.#granting.wanting = true;
      }
    }
    this.settle();
  }

  base(id: string, spec: RunSpec): void {
    this.#granting.bases.set(id, spec);
  }

  baseOf(id: string): RunSpec | undefined {
    return this.#granting.bases.get(id);
  }

  /** Tasks that an earlier desk granted and nobody has named since, each with its client. */
  unnamed(): readonly { readonly key: AttemptKey; readonly client: string }[] {
    return [...this.#grants.values()].map(({ key, client = '' }) => ({ key, client }));
  }

  /** All that is known, to be written down anew. */
  snapshot(): Recovered {
    return { attempts: this.#attempts, grants: this.#grants, standings: this.priorities.all() };
  }

  /** Attempts that are at a worker and have not ended. */
  get busy(): number {
    return [...this.#attempts.values()].filter(({ phase, worker }) => worker !== undefined && phase !== 'ended').length;
  }

  /** What this client's attempts are now. */
  all(client: string): Attempt[] {
    return [...this.#attempts.values()].filter((attempt) => attempt.client === client);
  }

  get(key: AttemptKey): Attempt | undefined {
    return this.#attempts.get(key);
  }

  attempts(): Iterable<Attempt> {
    return this.#attempts.values();
  }

  /** Idle ones are withdrawn at once; of the others the worker is asked, and its word is reported when it comes. */
  cancel(keys: readonly AttemptKey[], how: 'remove' | 'vacate' | 'if-not-started', words: string): void {
    for (const key of keys) {
      const attempt = this.#attempts.get(key);
      if (!attempt || attempt.phase === 'ended' || attempt.phase === 'withdrawn') continue;
      if (attempt.worker === undefined) {
        if (how === 'vacate') continue;
        this.kinds.dequeue(attempt);
        this.#withdraw(attempt);
      } else {
        attempt.cancelling = how;
        this.#send(attempt.worker, { t: 'cancel', key, how, words });
      }
    }
    this.settle();
  }

  suspend(keys: readonly AttemptKey[], stop: boolean): void {
    for (const key of keys) {
      const attempt = this.#attempts.get(key);
      if (attempt?.worker !== undefined) this.#send(attempt.worker, { t: stop ? 'suspend' : 'resume', key });
    }
    this.settle();
  }

  /** Nothing is kept; who still has something of it drops it. */
  forget(keys: readonly AttemptKey[], done: () => void): void {
    crashPoint('desk.before-forget');
    const byWorker = new Map<string, AttemptKey[]>();
    for (const key of keys) {
      const attempt = this.#attempts.get(key);
      const { worker } = attempt ?? this.#grants.get(key) ?? {};
      this.#attempts.delete(key);
      this.#grants.delete(key);
      if (attempt) this.kinds.dequeue(attempt);
      if (worker === undefined) continue;
      byWorker.set(worker, [...(byWorker.get(worker) ?? []), key]);
      this.collector.get(worker)?.held.delete(key);
    }
    this.#ports.journal.add({ r: 'f', keys });
    this.whenSaved(() => {
      crashPoint('desk.saved-forget');
      for (const [worker, gone] of byWorker) this.#ports.toWorker(worker, { t: 'forget', keys: gone });
      done();
    });
  }

  follow(key: AttemptKey, stdout: number, stderr: number): void {
    const worker = this.#attempts.get(key)?.worker;
    if (worker !== undefined) this.#send(worker, { t: 'follow', key, stdout, stderr });
    this.settle();
  }

  /** A worker was let in: what it holds and what we granted it are brought together. */
  join(worker: Worker, held: readonly HeldAttempt[]): void {
    for (const { kind, size } of this.collector.get(worker.instance)?.claims.values() ?? [])
      this.priorities.use(kind.owner, -size.cpus);
    this.collector.add(worker);
    worker.held = new Map(held.map((one) => [one.key, one]));
    // A task of a map whose client has not come back yet is kept for it.
    const whose = (key: AttemptKey) => (this.#attempts.get(key) ?? this.#grants.get(key))?.worker;
    const unknown = held.map(({ key }) => key).filter((key) => whose(key) !== worker.instance);
    if (unknown.length > 0) this.#send(worker.instance, { t: 'forget', keys: unknown });
    for (const attempt of this.#attempts.values())
      if (attempt.worker === worker.instance) this.#reconcile(worker, attempt, worker.held.get(attempt.key));
    this.#granting.wanting = true;
    this.settle();
  }

  /** The connection of a worker ended; what runs there runs on. */
  leave(instance: string): void {
    const worker = this.collector.get(instance);
    if (!worker) return;
    worker.connected = false;
    worker.since = this.#ports.now();
    worker.movedAt = this.#ports.clock();
    if (![...this.#attempts.values()].some((attempt) => attempt.worker === instance)) this.collector.remove(instance);
  }

  /** The workers that this token let in are no more, as somebody knows who watches them: what ran there ended with them. */
  bury(token: string, words: string): void {
    for (const attempt of this.burials.bury(token, this.#attempts.values()))
      this.#end(attempt, { how: nodeFail(words) });
    this.settle();
  }

  hear(instance: string, message: FromWorker, bytes: Buffer): void {
    const worker = this.collector.get(instance);
    if (!worker) return;
    if (message.t === 'ad') {
      if (!this.collector.update(worker, message.ad)) return;
      this.#granting.wanting = true;
      return this.settle();
    }
    if (!('key' in message)) return;
    const attempt = this.#attempts.get(message.key);
    // A worker speaks of what was granted to it alone.
    if (attempt?.worker !== instance) return;
    switch (message.t) {
      case 'started':
        attempt.startedAt = message.at;
        attempt.host = slotName(worker, attempt.claim) ?? worker.host;
        worker.refused.delete(attempt.kind);
        if (attempt.phase === 'granted') this.#move(attempt, 'running');
        if (attempt.cancelling === 'if-not-started') this.#report(attempt);
        break;
      case 'suspended':
      case 'resumed':
        if (attempt.phase === 'running' || attempt.phase === 'suspended')
          this.#move(attempt, message.t === 'suspended' ? 'suspended' : 'running');
        break;
      case 'ended':
        attempt.host = slotName(worker, attempt.claim) ?? attempt.host ?? worker.host;
        if (message.files) attempt.files = message.files;
        if (message.inline) {
          const { stdout } = message.inline;
          attempt.inline = { stdout: bytes.subarray(0, stdout), stderr: bytes.subarray(stdout) };
        }
        if (attempt.phase !== 'ended') this.#end(attempt, message.ending);
        else this.#report(attempt);
        break;
      case 'gone':
        this.#gone(worker, attempt, message);
        break;
      case 'chunk':
      case 'ask':
        return;
    }
    this.settle();
  }

  /** Looks for leases that have run out. */
  tick(): void {
    for (const attempt of overdue(this.#attempts.values(), this.collector, this.#ports.clock()))
      this.#end(attempt, { how: nodeFail(LEASE_OVER) });
    this.#granting.wanting = true;
    this.settle();
  }

  /** Once for all that came together: negotiation, then the disk, then what is to be said. */
  settle(): void {
    if (this.#settling) return;
    this.#settling = true;
    setImmediate(() => {
      this.#settling = false;
      this.#granting.negotiate();
      const out = this.#out;
      this.#out = [];
      this.#ports.journal.whenSaved(() => {
        for (const call of out) call();
      });
    });
  }

  #end(attempt: Attempt, ending: Ending): void {
    crashPoint('desk.before-end');
    attempt.ending = ending;
    attempt.phase = 'ended';
    if (ending.startedAt !== undefined) attempt.startedAt = ending.startedAt;
    const { kind, request } = attempt;
    if (kind && ending.startedAt !== undefined && ending.endedAt !== undefined && ending.how.kind !== 'by-site')
      this.kinds.learn(kind, ending.endedAt - ending.startedAt);
    if (!isKeptByClient(request.spec)) this.#ports.journal.add(endedEntry(attempt, ending));
    this.#out.push(() => crashPoint('desk.saved-end'));
    this.#report(attempt);
    this.#granting.next(attempt);
  }

  #gone(worker: Worker, attempt: Attempt, { why, words }: Extract<FromWorker, { t: 'gone' }>): void {
    if (attempt.phase === 'ended' || attempt.phase === 'withdrawn') return;
    const kind = attempt.kind;
    if (why === 'behind' && kind) this.kinds.mistook(kind);
    else this.#ports.log(`${attempt.key}: not at ${worker.name}`, { why, words });
    this.#granting.drop(worker, attempt);
    if (attempt.cancelling === 'remove' || attempt.cancelling === 'if-not-started') return this.#withdraw(attempt);
    if (why === 'input') {
      this.#attempts.delete(attempt.key);
      this.#ports.journal.add({ r: 'f', keys: [attempt.key] });
      this.#out.push(() => this.#ports.toClient(attempt.client, { key: attempt.key, is: 'lost', why: words }, attempt));
      return;
    }
    if (why === 'claim' && kind) this.collector.refuse(worker, kind);
    this.#again(attempt, words);
  }

  /** It never ran there: it waits for another. */
  #again(attempt: Attempt, words: string): void {
    ungrant(attempt);
    delete attempt.cancelling;
    attempt.why = words;
    this.#ports.journal.add({ r: 'u', key: attempt.key });
    this.kinds.enqueue(attempt);
    this.#granting.wanting = true;
    this.#report(attempt);
  }

  #withdraw(attempt: Attempt): void {
    attempt.phase = 'withdrawn';
    this.#ports.journal.add({ r: 'w', key: attempt.key });
    this.#report(attempt);
  }

  /** What we granted to a worker, and what it says that it holds. */
  #reconcile(worker: Worker, attempt: Attempt, held: HeldAttempt | undefined): void {
    const finding = findingOf(attempt, worker, held);
    if (held?.startedAt !== undefined) attempt.startedAt = held.startedAt;
    switch (finding.is) {
      case 'settled':
        return;
      case 'ended':
        return this.#end(attempt, finding.ending);
      case 'not-arrived':
        if (attempt.cancelling === 'remove' || attempt.cancelling === 'if-not-started') return this.#withdraw(attempt);
        return this.#again(attempt, 'its worker was cut off before it heard of it');
      case 'there':
        if (this.collector.keep(worker, attempt) && attempt.kind)
          this.priorities.use(attempt.kind.owner, attempt.kind.size.cpus);
        attempt.host = slotName(worker, attempt.claim) ?? worker.host;
        if (finding.phase !== undefined) this.#move(attempt, finding.phase);
        if (attempt.cancelling)
          this.#send(worker.instance, { t: 'cancel', key: attempt.key, how: attempt.cancelling, words: 'asked again' });
    }
  }

  #move(attempt: Attempt, phase: 'running' | 'suspended'): void {
    attempt.phase = phase;
    this.#report(attempt);
  }

  #report(attempt: Attempt): void {
    this.#out.push(() => this.#ports.toClient(attempt.client, reportOf(attempt), attempt));
  }

  #send(worker: string, message: FromDesk): void {
    this.#out.push(() => this.#ports.toWorker(worker, message));
  }

  /** Calls back when all that was promised so far is on disk. */
  whenSaved(call: () => void): void {
    this.#out.push(call);
    this.settle();
  }

  #fresh(client: string, request: AttemptRequest, order = this.#order++): Attempt {
    return { key: request.key, client, request, kind: this.kinds.of(request), order, phase: 'prepared' };
  }
}
