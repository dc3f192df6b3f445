import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ClassAd } from '../../classad/api.ts';
import { asError, GryphusError } from '../../errors.ts';
import type { AttemptKey } from '../../job/ids.ts';
import type { Ending } from '../../site/contract.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { adFrom } from '../wire/ads.ts';
import { JobAdText } from './ad-files.ts';
import { refusalIn } from './accounts.ts';
import { awaitEnd } from './adopted.ts';
import { beforeEnd, takeBack } from './before-end.ts';
import { equipToSave, takeCheckpoint } from './checkpoint.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { AttemptPlace } from './attempt-place.ts';
import { diskFullMessage, isFull, LEAST_KB, NO_SPACE } from '../host/full-disk.ts';
import { DiskSpace, lackedSpace } from './disk-space.ts';
import { renewCopies } from './hand-over.ts';
import { isTask, TaskRunnerSlot } from './task-runner-slot.ts';
import { lastOf } from './last-of.ts';
import { Run, runsIn } from './run.ts';
import { enterGroup, isLimited, joinGroup, overLimits, starved } from './run-group.ts';
import { newsOf, sendNews, sendPieces } from './run-news.ts';
import { givenUp, waitsForOthers } from './gang-gate.ts';
import { BlobCache } from './sandbox.ts';
import { dropUnused, equip, proxyAgain, stage } from './stage.ts';
import type { StartdOptions } from './startd-options.ts';
import { setTimers } from './run-timers.ts';
import { cancelled, endLeases, evicted, graceOf, stop, stopNow, sweep, Sweeper, unplaced } from './stopping.ts';
import { stillSuspended, userOrder } from './suspending.ts';
import { placeWaiter } from './waiter/waiter.ts';
import { type Start, WorkerClaims } from './worker-claims.ts';
import {
  derived,
  type FromCentralManager,
  type FromWorker,
  type HeldAttempt,
  type WorkerOrder,
  type RunSpec,
} from '../wire/wire.ts';

type Cancel = Extract<FromCentralManager, { t: 'cancel' }>;

const FOLLOW_MS = 250;
/** The interval between memory checks, in milliseconds. */
const LOOK_MS = 1000;
/** After a run longer than this, in seconds, leftover processes are killed before its end is reported. */
const SWEEP_FIRST = 1;
const BEHIND = 'the job before it takes longer than expected';

/**
 * A worker's execution side: its slots, the claims on them, and the runs. Every promise is on disk first, so that the
 * next worker in the same directory finds what this one left.
 */
export class Startd {
  readonly #options: StartdOptions;
  readonly #jobsDir: string;
  readonly #cache: BlobCache;
  readonly #kinds = new Map<string, { readonly ad: ClassAd; readonly text: JobAdText }>();
  readonly #bases = new Map<string, RunSpec>();
  readonly space: DiskSpace;
  readonly #claims: WorkerClaims;
  readonly #waiter: readonly string[];
  readonly #runs = new Map<AttemptKey, Run>();
  readonly #sweeper = new Sweeper();
  readonly #timers: NodeJS.Timeout[];
  #draining: string | undefined;
  readonly #closing = new AbortController();

  constructor(options: StartdOptions) {
    this.#options = options;
    this.#jobsDir = join(options.dir, 'jobs');
    const taskRunnersDir = join(options.dir, 'task-runners');
    // The worker's directory itself is not recreated if someone has removed it.
    for (const dir of [this.#jobsDir, taskRunnersDir]) if (!existsSync(dir)) mkdirSync(dir, { mode: 0o700 });
    this.#cache = new BlobCache(join(options.dir, 'cache'));
    this.space = new DiskSpace(options.dir, options.diskKb);
    this.#waiter = placeWaiter(join(options.dir, 'waiter'), options.scripts);
    this.#claims = new WorkerClaims({
      ...options,
      waiter: this.#waiter,
      jobsDir: this.#jobsDir,
      taskRunnersDir,
      space: this.space,
      executeDir: options.accounts?.dir,
    });
    this.#adopt(taskRunnersDir);
    this.#timers = [
      setInterval(() => sendNews(this.#runs.values(), options.say), FOLLOW_MS),
      setInterval(() => this.#look(), LOOK_MS),
    ];
  }

  /** Everything that it holds, for a central manager that it has just connected to; idle claims are released. */
  held(): HeldAttempt[] {
    this.dropWaiting();
    this.#claims.releaseIdle();
    return [...this.#runs.values()].map((run) => run.view());
  }

  /** Forgets the starts waiting behind others: the next report of what is held shows that they did not arrive. */
  dropWaiting(): void {
    this.#claims.dropWaiting();
  }

  /** The number of attempts whose programs may be running. */
  get busy(): number {
    return [...this.#runs.values()].filter((run) => run.phase !== 'ended').length;
  }

  /** The number of attempts that have not been forgotten. */
  get waiting(): number {
    return this.#runs.size;
  }

  /** The longest time that the current runs may take to end, in seconds. */
  get grace(): number {
    return Math.max(0, ...[...this.#runs.values()].map((run) => (run.phase === 'ended' ? 0 : graceOf(run))));
  }

  get runs(): Iterable<Run> {
    return this.#runs.values();
  }

  get draining(): boolean {
    return this.#draining !== undefined;
  }

  find(key: AttemptKey): Run | undefined {
    return this.#runs.get(key);
  }

  take(message: WorkerOrder): void {
    switch (message.t) {
      case 'kind':
        this.#kinds.set(message.id, { ad: adFrom(message.ad), text: new JobAdText(message.ad) });
        return;
      case 'base':
        this.#bases.set(message.id, message.spec);
        return;
      case 'start':
        return this.#start(message);
      case 'go':
        return this.#go(message.key, message.claim);
      case 'release':
        return this.#claims.release(message.claim);
      case 'cancel':
        return this.#cancel(message);
      case 'suspend':
      case 'resume':
      case 'checkpoint':
        return userOrder(this.#runs.get(message.key), message.t, this.#options);
      case 'forget':
        for (const key of message.keys) this.#forget(key);
        return;
      case 'follow':
        return this.#runs.get(message.key)?.follow(message);
      case 'want':
        return void sendPieces(this.#runs.get(message.key), message, this.#options.say);
      case 'drain':
        return this.drain(message.now, message.message);
      // What stands for a partner's machines is no startd.
      case 'disbelieved':
    }
  }

  drain(now: boolean, message: string): void {
    this.#draining = message;
    this.#giveBack(this.#claims.dropWaiting(), message);
    if (now) for (const run of this.#runs.values()) if (run.phase !== 'ended') stop(run, evicted(message, 'drain'));
  }

  /** Ends the runs whose lease is over. `seconds`: since the central manager was last heard. */
  endLeases(seconds: number): void {
    endLeases(this.#runs.values(), seconds);
  }

  close(): void {
    this.#closing.abort();
    for (const timer of this.#timers) clearInterval(timer);
    this.#sweeper.close();
    this.#claims.close();
  }

  #start(start: Start): void {
    const known = this.#runs.get(start.key);
    if (known) return this.#tell(known);
    const behind = this.#draining === undefined ? this.#claims.behind(start) : undefined;
    if (behind === 'waits') return;
    if (behind === 'slow') return this.#giveBack([start], BEHIND);
    const kind = this.#kinds.get(start.kind);
    const base = 'base' in start.spec ? this.#bases.get(start.spec.base) : start.spec;
    const account = this.#options.accounts?.choose(start.ad, kind?.ad, this.#runs.values()) ?? {};
    const closed = this.#draining ?? this.#options.owner?.refusal ?? refusalIn(account);
    const no = (this.space.kb < LEAST_KB ? NO_SPACE : closed) ?? this.#claims.admit(start, kind?.ad);
    if (no !== undefined) return this.#gone(start.key, 'claim', no);
    if (!base) return this.#gone(start.key, 'never-started', 'its description has not arrived');
    const spec = 'base' in start.spec ? derived(base, start.spec) : start.spec;
    const record = this.#claims.record(start, spec, account, kind?.text.texts);
    let place: AttemptPlace;
    try {
      crashPoint('worker.before-record');
      place = this.#claims.place(record, 'base' in start.spec ? start.spec.base : undefined, start.slot);
      crashPoint('worker.saved-record');
    } catch (thrown) {
      return this.#gone(start.key, 'claim', diskFullMessage(thrown));
    }
    const run = new Run(record, place);
    if (kind && !('base' in start.spec)) run.received = { start, kind: kind.text };
    this.#runs.set(start.key, run);
    equipToSave(run, this.#options.checkpoints);
    this.#claims.occupy(run);
    this.#stage(run);
  }

  #stage(run: Run): void {
    const coming = stage(run, this.#cache, this.#options);
    if (!coming) return this.#launch(run);
    void coming.then(
      () => this.#launch(run),
      (thrown: unknown) => this.#unfit(run, thrown),
    );
  }

  #launch(run: Run): void {
    if (run.aborted) return this.#unstart(run, 'cancelled', 'it was cancelled');
    if (waitsForOthers(run, this.#options.say)) return;
    const refusal = this.#options.owner?.refusal;
    if (refusal !== undefined) return this.#unstart(run, 'claim', refusal);
    const { dir, record } = run;
    const { containers, groups } = this.#options;
    try {
      const placed = equip(run, this.#cache, this.#options);
      run.starter = (dir instanceof TaskRunnerSlot ? dir.taskRunner : undefined) ?? this.#claims.starter(record.claim);
      run.shell = run.starter.identity;
      crashPoint('worker.before-start');
      if (dir instanceof AttemptDir)
        containers.arm(run, dir, run.shell, placed, this.#cache, () => enterGroup(run, dir, groups), this.#waiter);
    } catch (thrown) {
      return this.#unfit(run, thrown);
    }
    run.phase = 'running';
    run.startedAt = Math.round(Date.now() / 10) / 100;
    run.starter.run(record.user ? join(dir.work, '..') : run.key, () => this.#over(run));
    crashPoint('worker.after-start');
    setTimers(run, this.#options, () => {
      joinGroup(run, groups);
      this.#giveBack(this.#claims.slow(record.claim), BEHIND);
    });
  }

  /** All nodes of its job are ready, and may start. */
  #go(key: AttemptKey, claim: string): void {
    const run = this.#runs.get(key);
    if (!run || run.record.claim !== claim) return this.#gone(key, 'never-started', 'its start was given up');
    run.told = true;
    if (run.phase === 'staging' && run.ready) this.#launch(run);
  }

  /** The shell reported the end, or has ended itself, in which case processes of the run may still be alive. */
  #over(run: Run): void {
    if (run.starter?.alive || run.dir.exit()) return this.#ended(run);
    void lastOf(run, this.#closing.signal).then(() => this.#closing.signal.aborted || this.#ended(run));
  }

  #ended(run: Run): void {
    run.clearTimers();
    const first = beforeEnd(run, this.#runs.values(), this.#options);
    if (first) return void first.then(() => this.#ended(run));
    const exit = run.dir.exit();
    takeCheckpoint(run, this.#options.checkpoints);
    if (isLimited(run, this.#options.machine)) run.decided ??= starved(run);
    const began = run.dir.startedAt();
    run.startedAt = began ?? (exit ? run.startedAt : undefined);
    if (began === undefined && !run.decided && lackedSpace(run, exit, this.space))
      return this.#unstart(run, 'claim', NO_SPACE);
    if (run.startedAt === undefined && !exit) {
      if (run.decided?.how.kind === 'by-site' && run.decided.how.cause === 'cannot-start')
        return this.#finish(run, run.endingOf(undefined));
      if (run.decided) return this.#unstart(run, 'cancelled', 'it was cancelled');
      return this.#unstart(run, 'never-started', 'its shell ended before it could start it');
    }
    const ending = run.endingOf(exit);
    const lasted = (ending.endedAt ?? 0) - (run.startedAt ?? 0);
    // A job that may be retried must leave no processes behind; the others are swept soon afterwards.
    const failed = !isTask(run.dir) && (ending.how.kind !== 'exited' || ending.how.code !== 0);
    if (lasted > SWEEP_FIRST || run.decided || failed || !exit || run.record.user) {
      void sweep(run, this.#runs.values()).then(() => this.#finish(run, ending));
    } else {
      this.#sweeper.add(run);
      this.#finish(run, ending);
    }
  }

  #finish(run: Run, ending: Ending): void {
    crashPoint('worker.before-end');
    run.end(ending);
    this.#claims.leave(run);
    const next = this.#claims.next(run.record.claim);
    if (run.forgotten) this.#forget(run.key);
    // If another attempt starts here, the report need not be sent immediately.
    else this.#tell(run, next !== undefined);
    crashPoint('worker.after-end');
    this.#goOn(run.record.claim, next);
  }

  /** Reports its current state. */
  #tell(run: Run, unhurried = false): void {
    const news = newsOf(run);
    if (news) this.#options.say(news.message, news.bytes, unhurried);
  }

  /** Starts what is waiting under a claim. */
  #goOn(claim: string, first = this.#claims.next(claim)): void {
    for (let next = first; next; next = this.#claims.next(claim)) this.#start(next);
  }

  #giveBack(starts: readonly Start[], message: string): void {
    for (const { key } of starts) this.#gone(key, 'behind', message);
  }

  #unfit(run: Run, thrown: unknown): void {
    const error = asError(thrown);
    const ending = unplaced(run, error);
    if (ending) return this.#finish(run, ending);
    const input = error instanceof GryphusError && error.code === 'input-missing';
    this.#unstart(run, input ? 'input' : 'claim', diskFullMessage(error));
    if (isFull(error)) dropUnused(this.#runs.values(), this.#cache);
  }

  /** Removes a run that has not started and will not. */
  #unstart(run: Run, why: Extract<FromWorker, { t: 'gone' }>['why'], message: string): void {
    takeBack(run, this.#options);
    this.#claims.leave(run);
    this.#runs.delete(run.key);
    run.dir.remove();
    // The central manager's order to release it came while the run was there.
    if (run.found || run.forgotten) this.#claims.release(run.record.claim);
    this.#gone(run.key, why, message);
    this.#goOn(run.record.claim);
  }

  #gone(key: AttemptKey, why: Extract<FromWorker, { t: 'gone' }>['why'], message: string): void {
    this.#options.say({ t: 'gone', key, why, message });
  }

  #cancel({ key, how, message, by = 'user' }: Cancel): void {
    const run = this.#runs.get(key);
    if (!run) {
      this.#claims.unwait(key);
      return this.#gone(key, 'cancelled', message);
    }
    if (run.phase === 'ended') return this.#tell(run);
    if (run.phase === 'staging') {
      run.aborted = true;
      return run.ready ? this.#launch(run) : undefined;
    }
    if (how === 'if-not-started') return this.#tell(run);
    stop(run, how === 'vacate' ? evicted(message, by) : cancelled(message));
  }

  #forget(key: AttemptKey): void {
    const run = this.#runs.get(key);
    if (!run) return this.#claims.unwait(key);
    if (run.phase === 'ended') {
      this.#runs.delete(key);
      run.dir.remove();
      if (run.forgotten || run.found) this.#claims.release(run.record.claim);
    } else {
      run.forgotten = true;
      // It may run elsewhere by now.
      stopNow(run, cancelled('the agent does not know it'));
      if (run.ready && run.aborted) this.#launch(run);
    }
  }

  #look(): void {
    this.#claims.endSpareTaskRunners();
    if (this.space.kb < LEAST_KB) dropUnused(this.#runs.values(), this.#cache);
    renewCopies(this.#runs.values());
    for (const run of this.#runs.values()) if (givenUp(run)) this.#launch(run);
    const over = overLimits(this.#runs.values());
    for (const { run, ending } of over) if (isLimited(run, this.#options.machine)) stop(run, ending);
  }

  /** Takes over what an earlier worker left in this directory: ended, running or never started. */
  #adopt(taskRunnersDir: string): void {
    for (const run of runsIn([this.#jobsDir, ...(this.#options.accounts?.left ?? [])], taskRunnersDir)) {
      this.#options.log(`found ${run.key}`);
      this.#runs.set(run.key, run);
      run.found = true;
      equipToSave(run, this.#options.checkpoints);
      this.#claims.adopt(run);
      stillSuspended(run, this.#options.owner);
      proxyAgain(run, this.#options.chirp);
      // The listeners are only set up later in this same turn.
      queueMicrotask(() => awaitEnd(run, () => this.#over(run)));
    }
  }
}
