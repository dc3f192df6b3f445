import type { AttemptKey } from '../job/ids.ts';
import { inputPiece } from '../pool/central-manager/shadow.ts';
import type { FromCentralManager, FromWorker, HeldAttempt } from '../pool/wire/wire.ts';
import type { Ending } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { type Borrowed, type BorrowedEntry, byPartner, isRunning, type RecoveredBorrowed } from './borrowed-journal.ts';
import type { FlockMessage, Of } from './flock-wire.ts';
import { isLate, isStuck, START_MS, surelyOver } from './late.ts';
import { outgoingSpec } from './outgoing.ts';
import { type Going, outgoingJob } from './outgoing-job.ts';
import { sentence } from '../util/plain-text.ts';

type Start = Extract<FromCentralManager, { t: 'start' }>;

/** What a borrower needs of the world. All that must not be lost goes through the journal before it is said. */
export interface BorrowerPorts {
  readonly journal: { add(entry: BorrowedEntry): void; whenSaved(call: () => void): void };
  /** To the central manager, as the worker that stands for the partner's machines. */
  readonly say: (worker: string, message: FromWorker, bytes?: Uint8Array) => void;
  /** To the partner; false if it is not connected. */
  readonly tell: (partner: string, message: FlockMessage, bytes?: Uint8Array) => boolean;
  /** A job was given to a partner, or has left it: what its slots show has changed. */
  readonly changed: (partner: string) => void;
  /** The partner did something that it must not do. */
  readonly fault: (partner: string, message: string) => void;
  /** Bytes. */
  readonly mostResult: (partner: string) => number;
  /** The partner refused a job, by this clause. */
  readonly refused: (partner: string, clause: string, message: string) => void;
  /** Monotonic milliseconds. */
  readonly clock: () => number;
  readonly log: (message: string, facts?: object) => void;
}

/** The largest pieces of inputs that go out at once, in bytes. */
const PIECE = 1 << 20;
/** Streams are believed up to this size beyond what the end says, in bytes; it is checked where they are placed. */
const MOST_INLINE = 64 << 10;

/**
 * The side of a gateway that borrows. To our central manager it is a worker for each kind of a partner's machines; what
 * that worker holds is at the partner. Pure but for its ports.
 */
export class Borrower {
  readonly #ports: BorrowerPorts;
  readonly #jobs: Map<AttemptKey, Borrowed>;
  /** When the link with each partner came up, by the monotonic clock in milliseconds. */
  readonly #upSince = new Map<string, number>();
  #round: number;

  constructor(ports: BorrowerPorts, { jobs, round }: RecoveredBorrowed) {
    this.#ports = ports;
    this.#jobs = jobs;
    this.#round = round;
    for (const one of jobs.values()) if (one.phase === 'committed') one.committedAt = ports.clock();
  }

  get jobs(): Iterable<Borrowed> {
    return this.#jobs.values();
  }

  /** Those who have anything of it, once for each job. */
  *partners(): Generator<string> {
    for (const { job } of this.#jobs.values()) yield job.partner;
  }

  get(key: AttemptKey): Borrowed | undefined {
    return this.#jobs.get(key);
  }

  /** Cores that are held at a partner, or by jobs of our own at all of them. */
  cores(partner?: string): number {
    let cores = 0;
    for (const { job, phase } of this.#jobs.values())
      if (phase !== 'ended' && (partner === undefined ? !job.path : job.partner === partner)) cores += job.size.cpus;
    return cores;
  }

  snapshot(): RecoveredBorrowed {
    return { jobs: this.#jobs, round: this.#round };
  }

  /** What this worker holds, for the central manager. */
  held(worker: string): HeldAttempt[] {
    return [...this.#jobs.values()].flatMap((one) => {
      if (one.job.worker !== worker) return [];
      const is = one.phase === 'ended' ? 'ended' : isRunning(one) ? 'running' : 'staging';
      return [
        {
          key: one.job.key,
          is: is === 'running' && one.suspended ? 'suspended' : is,
          ...(one.startedAt === undefined ? {} : { startedAt: one.startedAt }),
          ...(one.ending ? { ending: one.ending } : {}),
        } as const,
      ];
    });
  }

  /** A grant of the central manager to a partner's machines. `kind`: the ad of its kind. */
  start(going: Going, start: Start, kind: Start['ad'] = {}): void {
    const { key } = start;
    const known = this.#jobs.get(key);
    if (known) return this.#again(known);
    const { partner, worker } = going;
    const job = outgoingJob(start, going, this.#round + 1, kind);
    if (typeof job === 'string') return this.#ports.say(worker, { t: 'gone', key, why: 'claim', message: job });
    this.#round += 1;
    crashPoint('flock.before-accept');
    this.#jobs.set(key, { job, phase: 'asked', grantedAt: this.#ports.clock() });
    this.#ports.journal.add({ r: 's', job });
    this.#ports.changed(partner);
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock.saved-accept');
      const one = this.#jobs.get(key);
      if (one?.job === job && !this.#ask(one)) this.#drop(one, `partner ${partner} is not connected`, 'claim');
    });
  }

  #ask(one: Borrowed): boolean {
    const { partner, worker: _worker, ...asked } = one.job;
    one.servedAt = this.#ports.clock();
    one.grantedAt ??= one.servedAt;
    return this.#ports.tell(partner, { t: 'prepare', ...asked, spec: outgoingSpec(asked.spec) });
  }

  /** The central manager has sent a start again: it is told how far the job is. */
  #again(one: Borrowed): void {
    const { key, worker } = one.job;
    if (one.phase === 'ended') this.#sayEnd(one);
    else if (one.startedAt !== undefined) this.#ports.say(worker, { t: 'started', key, at: one.startedAt });
  }

  /** Orders of the central manager for jobs at partners. */
  order(message: Extract<FromCentralManager, { t: 'cancel' | 'suspend' | 'resume' | 'checkpoint' | 'follow' }>): void {
    const one = this.#jobs.get(message.key);
    if (!one) return;
    const { key, round, partner } = one.job;
    if (message.t === 'follow') {
      one.followed = { stdout: message.stdout, stderr: message.stderr };
      this.#ports.tell(partner, { t: 'follow', key, round, ...one.followed });
    } else if (message.t !== 'cancel') this.#ports.tell(partner, { t: message.t, key, round });
    else if (one.phase === 'ended') this.#sayEnd(one);
    else if (one.phase === 'asked') {
      // It was never committed, so it cannot have run: the partner's answer need not be waited for.
      if (message.how === 'vacate') return this.#drop(one, message.message, 'claim');
      this.#drop(one, message.message, 'cancelled');
    } else {
      one.cancelling = message.how;
      this.#ports.tell(partner, { t: 'cancel', key, round, how: message.how, message: message.message });
    }
  }

  /** The results are home, or nobody wants them: COMMIT_END. */
  forget(keys: readonly AttemptKey[]): void {
    crashPoint('flock.before-forget');
    const mine = keys.flatMap((key) => this.#jobs.get(key) ?? []);
    for (const { job } of mine) this.#jobs.delete(job.key);
    if (mine.length === 0) return;
    this.#ports.journal.add({ r: 'f', keys: mine.map(({ job }) => job.key) });
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock.saved-forget');
      for (const [partner, gone] of byPartner(mine)) {
        this.#ports.tell(partner, { t: 'forget', keys: gone });
        this.#ports.changed(partner);
      }
    });
  }

  /** The link with a partner is up: both sides compare what they hold. */
  sync(partner: string): void {
    this.#upSince.set(partner, this.#ports.clock());
    const mine = [...this.#jobs.values()].filter(({ job }) => job.partner === partner);
    const held = mine.map(({ job: { key, round }, phase }) => ({ key, round, committed: phase !== 'asked' }));
    this.#ports.tell(partner, { t: 'sync', held });
    for (const one of mine) {
      if (one.phase === 'asked') this.#ask(one);
      else if (one.phase === 'committed') {
        const { key, round } = one.job;
        this.#ports.tell(partner, { t: 'commit', key, round });
        if (one.cancelling)
          this.#ports.tell(partner, { t: 'cancel', key, round, how: one.cancelling, message: 'asked again' });
        if (one.followed) this.#ports.tell(partner, { t: 'follow', key, round, ...one.followed });
      }
    }
  }

  /** The link with a partner is down: what it was only asked for is given back. */
  lost(partner: string): void {
    for (const one of this.#jobs.values())
      if (one.job.partner === partner && one.phase === 'asked')
        this.#drop(one, `partner ${partner} is not connected`, 'claim');
  }

  /** A message of a partner about a job. What is not its job, or of another round, is ignored. */
  hear(
    partner: string,
    message: Of<
      'prepared' | 'refused' | 'onward' | 'started' | 'suspended' | 'resumed' | 'ended' | 'gone' | 'unknown' | 'chunk'
    >,
    bytes: Buffer,
  ): void {
    const one = this.#jobs.get(message.key);
    if (!one || one.job.partner !== partner || one.job.round !== message.round || one.phase === 'ended') return;
    const { key, worker } = one.job;
    const committed = one.phase === 'committed';
    switch (message.t) {
      case 'prepared':
        if (one.phase === 'asked') this.#commit(one);
        return;
      case 'refused':
        this.#ports.refused(partner, message.clause, message.message);
        if (one.phase === 'asked')
          this.#drop(one, `partner ${partner} (${sentence(message.clause)}): ${message.message}`, 'claim');
        return;
      case 'onward':
        if (committed) one.servedAt = this.#ports.clock();
        return;
      case 'started':
        if (!committed || one.startedAt !== undefined) return;
        one.startedAt = message.at;
        if (message.host !== undefined) one.host = message.host;
        this.#ports.say(worker, { t: 'started', key, at: message.at });
        return;
      case 'suspended':
      case 'resumed':
        if (!isRunning(one)) return;
        one.suspended = message.t === 'suspended';
        this.#ports.say(worker, { t: message.t, key });
        return;
      case 'chunk':
        this.#chunk(one, message, bytes);
        return;
      case 'gone':
        if (committed && one.startedAt !== undefined)
          return this.#ports.fault(partner, `it says that ${key} never ran, which it had started`);
        if (one.job.to && !one.cancelling) this.#ports.refused(partner, 'forward', message.message);
        return this.#drop(
          one,
          `partner ${partner}: ${message.message}`,
          one.cancelling === 'remove' ? 'cancelled' : 'claim',
        );
      case 'unknown':
        if (committed) this.#end(one, { how: lost(`partner ${partner} has no record of it any more`) });
        return;
      case 'ended':
        if (!committed) return this.#ports.fault(partner, `it ended ${key}, which was not committed`);
        return this.#ended(one, message, bytes);
    }
  }

  #commit(one: Borrowed): void {
    const { key, round, partner } = one.job;
    crashPoint('flock.before-commit');
    one.phase = 'committed';
    one.committedAt = this.#ports.clock();
    this.#ports.journal.add({ r: 'c', key });
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock.saved-commit');
      this.#ports.tell(partner, { t: 'commit', key, round });
      if (one.followed) this.#ports.tell(partner, { t: 'follow', key, round, ...one.followed });
    });
  }

  #chunk(one: Borrowed, { stream, offset }: Of<'chunk'>, bytes: Buffer): void {
    const { followed, job } = one;
    if (!followed || one.phase !== 'committed' || offset > followed[stream]) return;
    const fresh = bytes.subarray(followed[stream] - offset);
    // What is too large is held when it has ended, and not brought home by this way.
    const isTooMuch = followed[stream] + fresh.length > this.#ports.mostResult(job.partner);
    if (fresh.length === 0 || isTooMuch) return;
    const at = followed[stream];
    followed[stream] += fresh.length;
    this.#ports.say(job.worker, { t: 'chunk', key: job.key, stream, offset: at }, fresh);
  }

  #ended(one: Borrowed, { ending, inline, noFiles }: Of<'ended'>, bytes: Buffer): void {
    if (noFiles) one.noFiles = true;
    const fits = inline && inline.stdout + inline.stderr === bytes.length && bytes.length <= MOST_INLINE;
    if (inline && fits) one.inline = { ...inline, bytes: Buffer.from(bytes) };
    this.#end(one, ending);
  }

  #end(one: Borrowed, ending: Ending): void {
    const { key, partner } = one.job;
    crashPoint('flock.before-end');
    one.phase = 'ended';
    one.ending = {
      ...ending,
      ...(one.startedAt === undefined || ending.startedAt !== undefined ? {} : { startedAt: one.startedAt }),
    };
    this.#ports.journal.add({ r: 'e', key, ending: one.ending, ...(one.noFiles ? { noFiles: true } : {}) });
    this.#ports.changed(partner);
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock.saved-end');
      this.#sayEnd(one);
    });
  }

  #sayEnd({ job: { key, worker }, ending, inline, noFiles }: Borrowed): void {
    if (!ending) return;
    const streams = inline && { stdout: inline.stdout, stderr: inline.stderr };
    this.#ports.say(
      worker,
      { t: 'ended', key, ending, ...(streams ? { inline: streams } : {}), ...(noFiles ? { files: [] } : {}) },
      inline?.bytes,
    );
  }

  /** It has not run at the partner and will not: our central manager may give it to anyone. */
  #drop(one: Borrowed, message: string, why: 'claim' | 'cancelled'): void {
    const { key, worker, partner, round } = one.job;
    if (this.#jobs.get(key) !== one) return;
    crashPoint('flock.before-drop');
    this.#jobs.delete(key);
    this.#ports.journal.add({ r: 'd', key });
    this.#ports.changed(partner);
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock.saved-drop');
      this.#ports.tell(partner, { t: 'cancel', key, round, how: 'remove', message: 'it is not needed there' });
      this.#ports.tell(partner, { t: 'forget', keys: [key] });
      this.#ports.say(worker, { t: 'gone', key, why, message });
    });
  }

  /** Ends what cannot run at a partner any more. `silence`: seconds since the partner was heard. */
  tick(partner: string, silence: number): void {
    const now = this.#ports.clock();
    for (const one of this.#jobs.values()) {
      const { job, phase } = one;
      if (job.partner !== partner || phase === 'ended') continue;
      if (phase === 'asked') {
        if (!isStuck(one, one.grantedAt ?? now, now)) continue;
        this.#ports.refused(partner, 'start', `it did not answer when it was asked to take ${job.key}`);
        this.#drop(one, `partner ${partner} did not answer`, 'claim');
      } else if (silence > surelyOver(job))
        this.#end(one, { how: lost(`partner ${partner} was not heard for the job's whole lease`) });
      else if (one.startedAt === undefined && !one.cancelling && isLate(one, now)) {
        one.cancelling = 'if-not-started';
        // While there was no link, it could not.
        if (now - (this.#upSince.get(partner) ?? now) > START_MS)
          this.#ports.refused(partner, 'start', `it took ${job.key} and did not start it`);
        const { key, round } = job;
        this.#ports.tell(partner, { t: 'cancel', key, round, how: 'if-not-started', message: 'it did not start' });
      }
    }
  }

  /**
   * Our central manager has not heard from a worker of ours for so many seconds, and may soon give its jobs to others:
   * they are ended before that.
   */
  cutOff(worker: string, seconds: number): void {
    for (const one of this.#jobs.values()) {
      const { job, phase, cancelling } = one;
      if (job.worker !== worker || phase !== 'committed' || cancelling || seconds < job.lease / 2) continue;
      one.cancelling = 'remove';
      const { key, round, partner } = job;
      this.#ports.tell(partner, { t: 'cancel', key, round, how: 'remove', message: 'its queue is not reachable' });
    }
  }

  /** The agreement ends: our jobs are called back from the partner. Returns how many are still there. */
  leave(partner: string): number {
    let left = 0;
    for (const one of this.#jobs.values()) {
      const { key, round } = one.job;
      if (one.job.partner !== partner) continue;
      if (one.phase === 'asked') {
        this.#drop(one, `the agreement with ${partner} ends`, 'claim');
        continue;
      }
      left += 1;
      if (one.phase === 'ended' || one.cancelling) continue;
      one.cancelling = 'vacate';
      this.#ports.tell(partner, { t: 'cancel', key, round, how: 'vacate', message: 'the agreement ends' });
    }
    return left;
  }

  /** A piece of an input of a job that this partner has. Rejects for anything else. */
  async piece(
    partner: string,
    ask: { key: AttemptKey; sha256: string; offset: number; bytes: number },
  ): Promise<Buffer> {
    const one = this.#jobs.get(ask.key);
    if (!one || one.job.partner !== partner || one.phase === 'ended') throw new Error('that job is not yours');
    one.servedAt = this.#ports.clock();
    const wanted = { t: 'ask', what: 'blob', id: 0, ...ask, bytes: Math.min(ask.bytes, PIECE) } as const;
    const piece = await inputPiece(one.job.spec, wanted);
    one.served = (one.served ?? 0) + piece.length;
    return piece;
  }
}

function lost(message: string): Ending['how'] {
  return { kind: 'by-site', cause: 'node-fail', message };
}
