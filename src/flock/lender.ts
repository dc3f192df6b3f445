import type { AttemptKey } from '../job/ids.ts';
import type { AttemptRequest } from '../pool/wire/client-wire.ts';
import type { RunSpec, Size } from '../pool/wire/wire.ts';
import type { Report } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { Refused } from './clauses.ts';
import type { FlockMessage, Of } from './flock-wire.ts';
import { endOf } from './lent-end.ts';
import { isPassedOn, isStale, type Lent, type LentEntry, type Passage, type RecoveredLent } from './lent-journal.ts';

/** What our central manager gets of a partner's job, and the job's way if it is passed on. */
export interface Admitted {
  readonly request: AttemptRequest & { readonly spec: RunSpec };
  readonly passage?: Passage;
}

/** What a lender needs of the world. */
export interface LenderPorts {
  readonly journal: { add(entry: LentEntry): void; whenSaved(call: () => void): void };
  readonly tell: (partner: string, message: FlockMessage, bytes?: Uint8Array) => boolean;
  /** Decides by the agreement, and makes of what was asked what our central manager gets. */
  readonly admit: (partner: string, asked: Of<'prepare'>) => Admitted | Refused;
  /** Brings a job's inputs here. Rejects if that is impossible. */
  readonly bring: (partner: string, request: AttemptRequest & { readonly spec: RunSpec }) => Promise<void>;
  /** The central manager; what it is told may be repeated. */
  readonly pool: {
    submit(request: AttemptRequest): void;
    cancel(key: AttemptKey, how: 'remove' | 'if-not-started'): void;
    steer(key: AttemptKey, how: 'vacate' | 'suspend' | 'continue'): void;
    forget(keys: readonly AttemptKey[], done: () => void): void;
    follow(key: AttemptKey, stdout: number, stderr: number): void;
  };
  /** Deletes what is here of a job. */
  readonly discard: (partner: string, key: AttemptKey) => void;
  readonly changed: (partner: string) => void;
  readonly refused: (partner: string, refused: Refused, user: string) => void;
  /** Monotonic milliseconds, and Unix seconds. */
  readonly clock: () => number;
  readonly now: () => number;
  readonly log: (message: string, facts?: object) => void;
}

interface Coming {
  readonly round: number;
  readonly partner: string;
  readonly size: Size;
  readonly isPassedOn: boolean;
}

/** A prepared job that is not committed within this time is dropped, in milliseconds. */
const COMMIT_MS = 600_000;
/**
 * The side of a gateway that lends. To our central manager it is a client whose jobs come after all others. Pure but for
 * its ports.
 */
export class Lender {
  readonly #ports: LenderPorts;
  readonly #jobs: Map<AttemptKey, Lent>;
  readonly #forgetting: Set<AttemptKey>;
  /** The rounds whose inputs are on their way. */
  readonly #coming = new Map<AttemptKey, Coming>();

  constructor(ports: LenderPorts, { jobs, forgetting }: RecoveredLent) {
    this.#ports = ports;
    this.#jobs = jobs;
    this.#forgetting = forgetting;
  }

  get jobs(): Iterable<Lent> {
    return this.#jobs.values();
  }

  /** Those who have anything of it, once for each job. */
  *partners(): Generator<string> {
    for (const { partner } of this.#jobs.values()) yield partner;
  }

  get(key: AttemptKey): Lent | undefined {
    return this.#jobs.get(key);
  }

  snapshot(): RecoveredLent {
    return { jobs: this.#jobs, forgetting: this.#forgetting };
  }

  /** A message of a partner. The promise for a PREPARE is resolved when it has been decided. */
  hear(
    partner: string,
    message: Of<'sync' | 'prepare' | 'commit' | 'cancel' | 'suspend' | 'resume' | 'checkpoint' | 'forget' | 'follow'>,
  ): Promise<void> | undefined {
    if (message.t === 'prepare') return this.#prepare(partner, message);
    this.#hear(partner, message);
    return undefined;
  }

  #hear(
    partner: string,
    message: Of<'sync' | 'commit' | 'cancel' | 'suspend' | 'resume' | 'checkpoint' | 'forget' | 'follow'>,
  ): void {
    if (message.t === 'sync') return this.#sync(partner, message);
    if (message.t === 'forget')
      return this.#forget(message.keys.filter((key) => this.#jobs.get(key)?.partner === partner));
    const { key, round } = message;
    const lent = this.#jobs.get(key);
    if (lent?.partner !== partner || lent.round !== round) {
      if (this.#coming.get(key)?.round === round && message.t === 'cancel') this.#coming.delete(key);
      else if (message.t === 'commit') this.#ports.tell(partner, { t: 'unknown', key, round });
      return;
    }
    switch (message.t) {
      case 'commit':
        return this.#commit(lent);
      case 'cancel':
        return this.#cancel(lent, message.how);
      case 'suspend':
        return this.#ports.pool.steer(key, 'suspend');
      case 'resume':
        return this.#ports.pool.steer(key, 'continue');
      case 'checkpoint':
        // Images are not made of a stranger's job.
        return;
      case 'follow':
        if (lent.given) this.#ports.pool.follow(key, message.stdout, message.stderr);
    }
  }

  async #prepare(partner: string, asked: Of<'prepare'>): Promise<void> {
    const { key, round, user } = asked;
    const known = this.#jobs.get(key);
    if (known && (known.partner !== partner || known.round !== round)) {
      if (known.partner === partner && known.round < round && known.phase !== 'committed') this.#forget([key]);
      else return this.#refuse(partner, asked, { clause: 'key', message: 'that key is in use here' });
    } else if (known) return this.#tell(known);
    if (this.#forgetting.has(key))
      return this.#refuse(partner, asked, { clause: 'key', message: 'what ran here of it is being cleared away' });
    if (this.#coming.get(key)?.round === round) return;
    const admitted = this.#ports.admit(partner, asked);
    if ('clause' in admitted) return this.#refuse(partner, asked, admitted);
    const { request, passage } = admitted;
    const way = passage ? { passage } : {};
    this.#coming.set(key, { round, partner, size: request.size, isPassedOn: isPassedOn(admitted) });
    this.#ports.changed(partner);
    try {
      await this.#ports.bring(partner, request);
    } catch (thrown) {
      if (this.#coming.get(key)?.round !== round) return;
      this.#coming.delete(key);
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      return this.#refuse(partner, asked, { clause: 'inputs', message: message.slice(0, 500) });
    }
    // It may have been cancelled, or asked for anew, meanwhile.
    if (this.#coming.get(key)?.round !== round) return;
    this.#coming.delete(key);
    if (this.#jobs.has(key) || this.#forgetting.has(key)) return;
    crashPoint('flock-lender.before-prepare');
    const lent: Lent = { partner, round, request, ...way, phase: 'prepared', at: this.#ports.clock() };
    this.#jobs.set(key, lent);
    this.#ports.journal.add({ r: 'p', partner, round, request, ...way });
    this.#ports.changed(partner);
    this.#ports.log('a job of a partner was prepared', { partner, key, user });
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock-lender.saved-prepare');
      if (this.#jobs.get(key) === lent) this.#ports.tell(partner, { t: 'prepared', key, round });
    });
  }

  #refuse(partner: string, { key, round, user }: Of<'prepare'>, refused: Refused): void {
    this.#ports.refused(partner, refused, user);
    this.#ports.tell(partner, { t: 'refused', key, round, ...refused });
  }

  #commit(lent: Lent): void {
    if (lent.phase !== 'prepared') return this.#tell(lent);
    crashPoint('flock-lender.before-commit');
    const { key } = lent.request;
    lent.phase = 'committed';
    this.#ports.journal.add({ r: 'c', key });
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock-lender.saved-commit');
      if (this.#jobs.get(key) === lent) this.#give(lent);
    });
  }

  #give(lent: Lent): void {
    lent.given = true;
    this.#ports.pool.submit(lent.request);
  }

  #cancel(lent: Lent, how: 'remove' | 'vacate' | 'if-not-started'): void {
    const { key } = lent.request;
    if (lent.phase === 'prepared') return this.#over(lent, 'it was cancelled');
    if (lent.phase === 'gone' || lent.end) return this.#tell(lent);
    if (lent.startedAt !== undefined && how === 'if-not-started') return this.#tell(lent);
    if (how === 'vacate') {
      if (lent.startedAt === undefined) this.#ports.pool.cancel(key, 'if-not-started');
      else this.#ports.pool.steer(key, 'vacate');
    } else this.#ports.pool.cancel(key, how);
  }

  /** The pool to which it was passed on has not taken it, and will not: it goes back to whom it came from. */
  turnBack(key: AttemptKey, why: string): void {
    const lent = this.#jobs.get(key);
    if (!lent || !isPassedOn(lent) || lent.phase !== 'committed' || lent.end || lent.startedAt !== undefined) return;
    lent.back = why;
    this.#ports.pool.cancel(key, 'if-not-started');
  }

  /** It will never run here. */
  #over(lent: Lent, message: string): void {
    const { key } = lent.request;
    lent.phase = 'gone';
    lent.message = message;
    this.#ports.journal.add({ r: 'o', key, message });
    this.#ports.changed(lent.partner);
    this.#ports.journal.whenSaved(() => this.#tell(lent));
  }

  #forget(keys: readonly AttemptKey[]): void {
    if (keys.length === 0) return;
    crashPoint('flock-lender.before-forget');
    const gone = keys.flatMap((key) => this.#jobs.get(key) ?? []);
    for (const key of keys) {
      this.#jobs.delete(key);
      this.#forgetting.add(key);
    }
    this.#ports.journal.add({ r: 'f', keys });
    this.#ports.journal.whenSaved(() => {
      crashPoint('flock-lender.saved-forget');
      this.#ports.pool.forget(keys, () => {
        for (const key of keys) this.#forgetting.delete(key);
      });
      for (const { partner, request } of gone) this.#ports.discard(partner, request.key);
      for (const partner of new Set(gone.map((lent) => lent.partner))) this.#ports.changed(partner);
    });
  }

  /** The partner has connected, and says what it gave us. The rest it does not want any more. */
  #sync(partner: string, { held }: Of<'sync'>): void {
    const rounds = new Map(held.map((one) => [one.key, one]));
    const dropped: AttemptKey[] = [];
    for (const lent of this.#jobs.values()) {
      if (lent.partner !== partner) continue;
      if (rounds.get(lent.request.key)?.round === lent.round) this.#tell(lent);
      else dropped.push(lent.request.key);
    }
    this.#forget(dropped);
    for (const { key, round, committed } of held) {
      const lent = this.#jobs.get(key);
      if (committed && (lent?.partner !== partner || lent.round !== round))
        this.#ports.tell(partner, { t: 'unknown', key, round });
    }
  }

  /** Tells the partner how far one of its jobs is. */
  #tell(lent: Lent): void {
    const { partner, round, request, phase, startedAt: at, end } = lent;
    const { key } = request;
    if (phase === 'prepared') this.#ports.tell(partner, { t: 'prepared', key, round });
    else if (phase === 'gone') this.#ports.tell(partner, { t: 'gone', key, round, message: lent.message ?? '' });
    else if (end) this.#sayEnd(lent, end);
    else if (at !== undefined) {
      this.#ports.tell(partner, { t: 'started', key, round, at });
      if (lent.suspended) this.#ports.tell(partner, { t: 'suspended', key, round });
    }
  }

  #sayEnd(lent: Lent, report: Extract<Report, { is: 'ended' }>): void {
    const { message, bytes } = endOf(lent, report);
    this.#ports.tell(lent.partner, message, bytes);
  }

  /** What the central manager says of our attempts; `complete`: of all of them. */
  reports(reports: readonly Report[], complete: boolean): void {
    for (const report of reports) this.#report(report);
    if (!complete) return;
    const known = new Set(reports.map(({ key }) => key));
    for (const lent of this.#jobs.values())
      if (lent.phase === 'committed' && !lent.end && !known.has(lent.request.key)) this.#give(lent);
    const unasked = [...known].filter((key) => this.#jobs.get(key)?.phase !== 'committed');
    const left = [...new Set([...unasked, ...this.#forgetting])];
    if (left.length > 0)
      this.#ports.pool.forget(left, () => {
        for (const key of left) this.#forgetting.delete(key);
      });
  }

  #report(report: Report): void {
    const lent = this.#jobs.get(report.key);
    if (lent?.phase !== 'committed' || lent.end) return;
    lent.given = true;
    const { partner, round, request } = lent;
    const { key } = request;
    switch (report.is) {
      case 'running':
        if (lent.startedAt === undefined) {
          lent.startedAt = report.since ?? this.#ports.now();
          lent.seenAt = this.#ports.clock();
          this.#tell(lent);
        } else if (lent.suspended) {
          lent.suspended = false;
          this.#ports.tell(partner, { t: 'resumed', key, round });
        }
        return;
      case 'suspended':
        if (lent.startedAt === undefined) lent.startedAt = this.#ports.now();
        lent.suspended = true;
        this.#tell(lent);
        return;
      case 'ended':
        crashPoint('flock-lender.before-end');
        lent.end = report;
        this.#ports.changed(partner);
        crashPoint('flock-lender.saved-end');
        return this.#tell(lent);
      case 'lost':
        return this.#over(lent, lent.back ?? report.why);
      case 'prepared':
        // The commit was lost with an earlier connection.
        return this.#ports.pool.submit(request);
      case 'queued':
      case 'asking':
      case 'held-by-site':
      case 'unclear':
    }
  }

  /**
   * Ends what may not go on. `silence`: seconds since the partner demonstrably heard us; `refusal`: why a job may not
   * run here any more.
   */
  tick(partner: string, silence: number, refusal: (lent: Lent) => Refused | undefined): void {
    const dropped: AttemptKey[] = [];
    for (const lent of this.#jobs.values()) {
      const { request, phase, end, startedAt } = lent;
      const { key, lease } = request;
      if (lent.partner !== partner) continue;
      if (phase === 'gone' || end) {
        if (isStale(lent, silence, this.#ports.now())) dropped.push(key);
      } else if (phase === 'prepared') {
        if (this.#ports.clock() - lent.at > COMMIT_MS) dropped.push(key);
      } else if (silence > lease) {
        lent.stopped = 'lease';
        this.#ports.pool.cancel(key, 'remove');
      } else if (lent.stopped === undefined) {
        const refused = refusal(lent);
        const retired = this.#ports.now() - (startedAt ?? 0) >= Number(request.ad['MaxJobRetirementTime'] ?? 0);
        if (!refused || !retired) continue;
        lent.stopped = 'agreement';
        this.#ports.refused(partner, refused, request.owner);
        this.#cancel(lent, 'vacate');
      }
    }
    this.#forget(dropped);
  }

  /** The agreement ends: the partner's jobs are ended, and it is told so. Returns how many of them it does not know of. */
  leave(partner: string): number {
    let left = 0;
    for (const lent of this.#jobs.values()) {
      if (lent.partner !== partner || lent.phase === 'gone') continue;
      left += 1;
      if (lent.end || lent.stopped === 'agreement') continue;
      lent.stopped = 'agreement';
      this.#cancel(lent, 'remove');
    }
    return left;
  }

  /** The agreement is over: nothing of the partner stays. */
  expel(partner: string): void {
    this.#forget([...this.#jobs.values()].flatMap((lent) => (lent.partner === partner ? [lent.request.key] : [])));
  }

  /** Cores of all jobs that are to run here, and had not started at this time of the monotonic clock. */
  promised(at: number): number {
    let cores = 0;
    for (const lent of this.#jobs.values()) {
      const { phase, seenAt, startedAt, end, request } = lent;
      const started = seenAt ?? (startedAt === undefined ? Number.POSITIVE_INFINITY : 0);
      if (phase !== 'gone' && !end && started > at && !isPassedOn(lent)) cores += request.size.cpus;
    }
    for (const { size, isPassedOn: isElsewhere } of this.#coming.values()) if (!isElsewhere) cores += size.cpus;
    return cores;
  }

  /** Cores that a partner's jobs hold, or are about to. */
  held(partner: string): number {
    let cores = 0;
    for (const lent of this.#jobs.values())
      if (lent.partner === partner && lent.phase !== 'gone' && !lent.end) cores += lent.request.size.cpus;
    for (const one of this.#coming.values()) if (one.partner === partner) cores += one.size.cpus;
    return cores;
  }
}
