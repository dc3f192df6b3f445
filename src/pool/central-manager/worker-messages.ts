import type { AttemptKey } from '../../job/ids.ts';
import type { Attempt } from './attempts.ts';
import { nodeFail } from './dead-workers.ts';
import { slotName, type Worker } from './collector.ts';
import type { CentralManagerTable } from './central-manager-state.ts';
import { LEASE_OVER, overdue } from './leases.ts';
import { findingOf } from './reconcile.ts';
import type { FromWorker, HeldAttempt } from '../wire/wire.ts';

/** Handles workers' messages, and what their silence means for the attempts granted to them. */
export class CentralManagerHearing {
  readonly #table: CentralManagerTable;

  constructor(table: CentralManagerTable) {
    this.#table = table;
  }

  /** A worker was admitted: reconciles what it holds with what was granted to it. */
  join(worker: Worker, held: readonly HeldAttempt[]): void {
    for (const { kind, size } of this.#table.collector.get(worker.instance)?.claims.values() ?? [])
      this.#table.priorities.use(kind.owner, -size.cpus);
    this.#table.collector.add(worker);
    worker.held = new Map(held.map((one) => [one.key, one]));
    // Tasks of a map whose client has not reconnected yet are kept.
    const whose = (key: AttemptKey) => (this.#table.attempts.get(key) ?? this.#table.grants.get(key))?.worker;
    // One whose lease is over has ended for us, and may run elsewhere. But if its end was reported, a worker that has just
    // started has not noticed that yet, and it has the results.
    const isOver = (key: AttemptKey) => {
      const attempt = this.#table.attempts.get(key);
      const how = attempt?.phase === 'ended' ? attempt.ending?.how : undefined;
      return how?.kind === 'by-site' && how.cause === 'node-fail';
    };
    const unknown = held.flatMap(({ key, is }) =>
      whose(key) !== worker.instance || (is !== 'ended' && isOver(key)) ? [key] : [],
    );
    if (unknown.length > 0) this.#table.send(worker.instance, { t: 'forget', keys: unknown });
    for (const attempt of this.#table.attempts.values())
      if (attempt.worker === worker.instance) this.reconcile(worker, attempt, worker.held.get(attempt.key));
    this.#table.granting.wanting = true;
    this.#table.settle();
  }

  /** A worker's connection ended; its jobs continue. */
  leave(instance: string): void {
    const worker = this.#table.collector.get(instance);
    if (!worker) return;
    worker.connected = false;
    worker.since = this.#table.ports.now();
    worker.movedAt = this.#table.ports.clock();
    if (![...this.#table.attempts.values()].some((attempt) => attempt.worker === instance))
      this.#table.collector.remove(instance);
  }

  /**
   * The workers admitted by this token have died, as reported by whoever watches them: their attempts ended with them.
   */
  declareDead(token: string, message: string): void {
    for (const attempt of this.#table.deadWorkers.declareDead(token, this.#table.attempts.values()))
      this.#table.end(attempt, { how: nodeFail(message) });
    this.#table.settle();
  }

  hear(instance: string, message: FromWorker, bytes: Buffer): void {
    const worker = this.#table.collector.get(instance);
    if (!worker) return;
    if (message.t === 'ad') {
      if (!this.#table.collector.update(worker, message.ad, message.size)) return;
      this.#table.granting.wanting = true;
      return this.#table.settle();
    }
    if (!('key' in message)) return;
    const attempt = this.#table.attempts.get(message.key);
    // A worker may report only attempts that were granted to it.
    if (attempt?.worker !== instance) return;
    switch (message.t) {
      case 'started':
        attempt.startedAt = message.at;
        attempt.host = slotName(worker, attempt.claim) ?? worker.host;
        worker.refused.delete(attempt.kind);
        delete attempt.slot;
        this.#table.arrived(attempt.key);
        if (attempt.phase === 'granted') this.#table.move(attempt, 'running');
        this.askToFollow(attempt);
        if (attempt.cancelling === 'if-not-started') this.#table.report(attempt);
        break;
      case 'ready':
        // The order may be an earlier one, of a start that was given up.
        if (message.claim !== attempt.claim) this.#table.send(instance, { t: 'forget', keys: [attempt.key] });
        else if (this.#table.gangs.hasGone(attempt)) this.#table.gangs.sendGo(attempt);
        else {
          attempt.ready = true;
          this.#table.report(attempt);
        }
        break;
      case 'suspended':
      case 'resumed':
        if (attempt.phase === 'running' || attempt.phase === 'suspended')
          this.#table.move(attempt, message.t === 'suspended' ? 'suspended' : 'running');
        break;
      case 'slot': {
        const { state, activity, enteredState, enteredActivity } = message;
        attempt.slot = { state, activity, enteredState, enteredActivity };
        if (attempt.node) this.#table.report(attempt);
        return;
      }
      case 'ended':
        attempt.host = slotName(worker, attempt.claim) ?? attempt.host ?? worker.host;
        if (message.files) attempt.files = message.files;
        if (message.inline) {
          const { stdout } = message.inline;
          attempt.inline = { stdout: bytes.subarray(0, stdout), stderr: bytes.subarray(stdout) };
        }
        if (attempt.phase !== 'ended') this.#table.end(attempt, message.ending);
        else this.#table.report(attempt);
        break;
      case 'gone':
        this.#gone(worker, attempt, message);
        break;
      case 'chunk':
      case 'sizes':
      case 'piece':
      case 'ask':
      case 'node-start':
        return;
    }
    this.#table.settle();
  }

  askToFollow({ key, worker, followed }: Attempt): void {
    if (worker === undefined || !followed) return;
    const { files, ...streams } = followed;
    const also = files && this.streamsResults(worker) ? { files } : {};
    this.#table.send(worker, { t: 'follow', key, ...streams, ...also });
  }

  /** Whether a worker, which may be of an earlier version, follows files. */
  streamsResults(worker: string): boolean {
    return this.#table.collector.get(worker)?.texts['HasStreamResults'] === 'true';
  }

  /** Records how much of a followed stream came; returns the attempt if it was granted to this worker. */
  streamed(instance: string, key: AttemptKey, stream: 'stdout' | 'stderr', end: number): Attempt | undefined {
    const attempt = this.#table.attempts.get(key);
    if (attempt?.worker !== instance) return undefined;
    if (attempt.followed) attempt.followed[stream] = end;
    return attempt;
  }

  /** Ends the attempts whose leases have expired. */
  tick(): void {
    this.#table.gangs.tick();
    for (const attempt of overdue(this.#table.attempts.values(), this.#table.collector, this.#table.ports.clock()))
      this.#table.end(attempt, { how: nodeFail(LEASE_OVER) });
    this.#table.granting.lookAgain();
    this.#table.settle();
  }

  #gone(worker: Worker, attempt: Attempt, { why, message }: Extract<FromWorker, { t: 'gone' }>): void {
    if (attempt.phase === 'ended' || attempt.phase === 'withdrawn') return;
    const kind = attempt.kind;
    if (why === 'behind' && kind) this.#table.autoclusters.mistook(kind);
    else this.#table.ports.log(`${attempt.key}: not at ${worker.name}`, { why, message });
    this.#table.granting.drop(worker, attempt);
    if (attempt.cancelling === 'remove' || attempt.cancelling === 'if-not-started')
      return this.#table.withdraw(attempt);
    if (why === 'input') return this.#table.lose(attempt, message);
    if (why === 'claim' && kind) this.#table.collector.refuse(worker, kind);
    this.#table.again(attempt, message);
  }

  /**
   * A node that waits at a worker that has reconnected: if its job has started, it starts too. Otherwise the start is
   * given up, since what was said in between is lost.
   */
  #stagingAgain(worker: Worker, attempt: Attempt): void {
    const { gangs, collector, priorities } = this.#table;
    if (collector.keep(worker, attempt) && attempt.kind) priorities.use(attempt.kind.owner, attempt.kind.size.cpus);
    if (gangs.hasGone(attempt)) gangs.sendGo(attempt);
    else gangs.never(attempt, 'the connection with its worker broke');
  }

  /** Reconciles an attempt granted to a worker with what the worker reports. */
  reconcile(worker: Worker, attempt: Attempt, held: HeldAttempt | undefined): void {
    const finding = findingOf(attempt, worker, held);
    if (held?.startedAt !== undefined) attempt.startedAt = held.startedAt;
    switch (finding.is) {
      case 'settled':
        return;
      case 'ended':
        return this.#table.end(attempt, finding.ending);
      case 'not-arrived':
        if (attempt.cancelling === 'remove' || attempt.cancelling === 'if-not-started')
          return this.#table.withdraw(attempt);
        return this.#table.again(attempt, 'its worker lost the connection before it received the job');
      case 'there':
        if (attempt.node && held?.is === 'staging') return this.#stagingAgain(worker, attempt);
        if (this.#table.collector.keep(worker, attempt) && attempt.kind)
          this.#table.priorities.use(attempt.kind.owner, attempt.kind.size.cpus);
        attempt.host = slotName(worker, attempt.claim) ?? worker.host;
        if (finding.phase !== undefined) this.#table.move(attempt, finding.phase);
        else if (attempt.isAwaited) this.#table.report(attempt);
        delete attempt.isAwaited;
        if (attempt.node) this.#table.gangs.back(attempt);
        // A worker does not remember who followed, and what was on its way when the connection broke is lost.
        this.askToFollow(attempt);
        if (attempt.cancelling)
          this.#table.send(worker.instance, {
            t: 'cancel',
            key: attempt.key,
            how: attempt.cancelling,
            message: 'asked again',
          });
    }
  }
}
