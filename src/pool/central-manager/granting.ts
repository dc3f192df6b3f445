import { randomBytes } from 'node:crypto';
import { Matchmaker } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { offerAd } from '../wire/ads.ts';
import type { Attempt, Autocluster } from './attempts.ts';
import { type Collector, freeNow, type HeldClaim, slotName, takesMore, type Worker } from './collector.ts';
import { isKeptByClient } from './central-manager-journal.ts';
import type { CentralManagerPorts } from './central-manager-ports.ts';
import { type Autoclusters, timeNeeded } from './autoclusters.ts';
import { type Grant, negotiate, type Offer } from './negotiator.ts';
import { preemptions } from './preempting.ts';
import type { Priorities } from './priorities.ts';
import type { Gate, Sharing } from './sharing.ts';
import type { StartThrottle } from './throttle.ts';
import { fits, plus } from '../wire/slots.ts';
import type { RunSpec, Size } from '../wire/wire.ts';

/** An older claim is released if others are waiting, in milliseconds (HTCondor's CLAIM_WORKLIFE is 20 minutes). */
const CLAIM_LIFE_MS = 300_000;
/** If more kinds than this might come first, the claim is released. */
const FEW = 32;
/**
 * After a negotiation, so many times its length, and this many milliseconds at most (HTCondor's NEGOTIATOR_INTERVAL), pass before the
 * next one for which there is no reason but time.
 */
const REST = 500;
const LONGEST_AGAIN_MS = 60_000;
/**
 * The maximum number of quick tasks that are granted behind the running one, so that the worker need not ask for each.
 */
const BEHIND = 4;

export interface GrantingOptions {
  readonly ports: Pick<CentralManagerPorts, 'journal' | 'toWorker' | 'now' | 'clock'>;
  readonly autoclusters: Autoclusters;
  readonly collector: Collector;
  readonly priorities: Priorities;
  readonly sharing: Sharing;
  readonly throttle: StartThrottle;
  /** Negotiates again, soon. */
  readonly wake: () => void;
  readonly attemptOf: (key: AttemptKey) => Attempt | undefined;
  /** Defers a call until what was promised is on disk. */
  readonly later: (call: () => void) => void;
  readonly dedicated: Dedicated;
}

/** What the dedicated scheduler does, and what it leaves to others. */
export interface Dedicated {
  readonly schedule: () => void;
  readonly hasWork: () => boolean;
  /** What is left of these offers for jobs that run for so many seconds at the most. */
  readonly spare: (offers: readonly Offer<Worker>[], seconds: number) => readonly Offer<Worker>[];
  readonly holdsOf: (instance: string) => boolean;
  /** The owners of parallel jobs that wait. */
  readonly owners: () => Iterable<string>;
  /** A node of a parallel job has ended, and leaves so much of its worker. */
  readonly left: (worker: Worker, size: Size) => void;
}

/** Grants waiting attempts to workers, in a negotiation cycle or under a claim that has become free. */
export class Granting {
  readonly #options: GrantingOptions;
  /** The specs that derived tasks are based on. */
  readonly bases = new Map<string, RunSpec>();
  /** Something has changed that may make a match possible. */
  wanting = false;
  /** When it may look again although nothing has changed, by the central manager's monotonic clock. */
  #againAt = Number.NEGATIVE_INFINITY;
  /** Until the throttle lets the next job start. */
  #timer: NodeJS.Timeout | undefined;

  constructor(options: GrantingOptions) {
    this.#options = options;
  }

  /** Time has passed, which alone may make a match possible. */
  lookAgain(): void {
    const now = this.#options.ports.clock();
    this.wanting ||= now >= Math.min(this.#againAt, this.#options.collector.refusalEnds);
  }

  negotiate(): void {
    if (!this.wanting) return;
    this.wanting = false;
    const { clock } = this.#options.ports;
    const began = clock();
    this.#negotiate();
    const now = clock();
    this.#againAt = now + Math.min(LONGEST_AGAIN_MS, (now - began) * REST);
  }

  #negotiate(): void {
    const { autoclusters, collector, priorities, sharing, ports, dedicated } = this.#options;
    if (dedicated.hasWork()) dedicated.schedule();
    const wanted = autoclusters.wanted();
    const parallel = dedicated.owners();
    if (wanted.length === 0) return priorities.want(new Set(parallel));
    const gate = sharing.gate();
    const options = { priorities, now: Math.floor(ports.now() / 1000), gate, ranks: sharing.rules.ranks };
    const sizes = wanted.length <= FEW ? wanted.map(({ size }) => size) : undefined;
    const first = negotiate(wanted, dedicated.spare(collector.offers(sizes), Number.POSITIVE_INFINITY), options);
    this.#take(first.grants);
    let { unserved } = first;
    // What is held for a parallel job may serve those that have ended before it starts.
    for (const one of dedicated.hasWork() ? autoclusters.wanted() : []) {
      for (const [seconds, attempts] of autoclusters.byLength(one.kind)) {
        const offers = dedicated.spare(collector.offers(), seconds);
        const those = { ...one, waiting: attempts.length };
        this.#take(negotiate([those], offers, { ...options, gate: sharing.gate() }).grants, attempts);
      }
      if (one.kind.queue.length === 0) unserved = unserved.filter((kind) => kind !== one.kind);
    }
    priorities.want(new Set([...unserved.map(({ owner }) => owner), ...parallel]));
    if (unserved.length > 0) this.#preempt(new Set(unserved), gate);
  }

  /** `those`: the attempts that are granted, if not the first of their kinds. */
  #take(grants: readonly Grant<Autocluster, Worker>[], those?: readonly Attempt[]): void {
    const { autoclusters } = this.#options;
    for (const [index, { kind, worker }] of grants.entries()) {
      if (!this.#mayStart(kind)) continue;
      const attempt = those ? those[index] : autoclusters.take(kind);
      if (those && attempt) autoclusters.dequeue(attempt);
      if (attempt) this.#claim(attempt, kind, worker);
    }
  }

  /** Tells the workers of a parallel job's nodes what they will start, when the grant is on disk. */
  startNodes(nodes: readonly Attempt[]): void {
    this.#options.later(() => crashPoint('central-manager.saved-gang'));
    for (const node of nodes) {
      const worker = this.#options.collector.get(node.worker ?? '');
      const { claim } = node;
      if (worker && claim !== undefined) this.#options.later(() => this.#start(node, worker, claim));
    }
  }

  /** A node never started: its claim is released. */
  dropNode(node: Attempt): void {
    const worker = this.#options.collector.get(node.worker ?? '');
    if (worker) this.drop(worker, node);
  }

  /** Whether the throttle lets the next job of this kind start now; if only later, negotiates again then. */
  #mayStart({ queue: [next] }: Autocluster): boolean {
    const wait = next === undefined ? 0 : this.#options.throttle.wait(next);
    if (wait === 0) return true;
    if (wait !== undefined && this.#timer === undefined)
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#options.wake();
      }, wait * 1000).unref();
    return false;
  }

  /** Preempts runs for jobs that their machines prefer, or whose owners have a better priority. */
  #preempt(unserved: ReadonlySet<Autocluster>, gate: Gate): void {
    const { autoclusters, collector, ports, priorities, sharing, attemptOf, later } = this.#options;
    const wanted = autoclusters.wanted().filter(({ kind }) => unserved.has(kind));
    const now = Math.floor(ports.now() / 1000);
    const { preemption: rules } = sharing.rules;
    const refuses = collector.refuses.bind(collector);
    const options = { workers: collector.all(), attemptOf, refuses, now, priorities, rules, gate };
    for (const { worker, claim, attempt, by, because } of preemptions(wanted, options)) {
      claim.promised = by;
      attempt.cancelling = 'vacate';
      const message = because === 'rank' ? 'its machine prefers another job' : `${by.owner} has a better user priority`;
      later(() =>
        ports.toWorker(worker.instance, { t: 'cancel', key: attempt.key, how: 'vacate', message, by: because }),
      );
    }
  }

  #claim(attempt: Attempt, kind: Autocluster, worker: Worker): void {
    const { collector, priorities } = this.#options;
    const id = randomBytes(6).toString('base64url');
    const { size } = kind;
    const made = { id, kind, size, key: attempt.key, behind: new Set<AttemptKey>() };
    const claim = collector.claim(worker, made);
    priorities.use(kind.owner, size.cpus);
    this.#grant(attempt, worker, id);
    this.#fill(worker, claim);
  }

  /** When many quick tasks are waiting, grants some before their turn. */
  #fill(worker: Worker, { id, kind, behind }: HeldClaim): void {
    const { autoclusters } = this.#options;
    if (this.#options.sharing.isLimited(kind)) return;
    while (behind.size < BEHIND && autoclusters.areQuick(kind) && this.#mayStart(kind)) {
      const next = autoclusters.take(kind);
      if (!next) return;
      behind.add(next.key);
      this.#grant(next, worker, id);
    }
  }

  /** What ran under a claim has ended: the claim takes the next attempt of the same kind, or is released. */
  next(attempt: Attempt): void {
    const { autoclusters, collector, priorities, ports, later } = this.#options;
    const worker = attempt.worker === undefined ? undefined : collector.get(attempt.worker);
    const claim = attempt.claim === undefined ? undefined : worker?.claims.get(attempt.claim);
    if (!worker || !claim || claim.behind.delete(attempt.key) || claim.key !== attempt.key) return;
    claim.key = firstOf(claim.behind);
    const tired = ports.clock() - claim.madeAt > CLAIM_LIFE_MS && autoclusters.othersWait(claim.kind);
    const lasts = collector.timeOf(worker).timeToLive > timeNeeded(claim.kind);
    const here = takesMore(worker);
    const open = here && !tired && lasts && !claim.promised && !this.#isBarred(claim) && this.#mayStart(claim.kind);
    const bound = claim.dedicated === true || this.#options.dedicated.holdsOf(worker.instance);
    const goesOn = open && !bound && !this.#isPassed(worker, claim);
    if (claim.key === undefined && goesOn) {
      const next = autoclusters.take(claim.kind);
      claim.key = next?.key;
      if (next) this.#grant(next, worker, claim.id);
    }
    if (claim.key !== undefined) {
      if (goesOn) this.#fill(worker, claim);
      return;
    }
    collector.release(worker, claim.id);
    priorities.use(claim.kind.owner, -claim.size.cpus);
    if (claim.dedicated) this.#options.dedicated.left(worker, claim.size);
    if (worker.connected) later(() => ports.toWorker(worker.instance, { t: 'release', claim: claim.id }));
    this.wanting = true;
    const heir = claim.promised;
    const enters = heir && here && fits(heir.size, freeNow(worker)) && !this.#options.sharing.gate().bars(heir, true);
    const first = enters ? autoclusters.take(heir) : undefined;
    if (heir && first) this.#claim(first, heir, worker);
  }

  /**
   * Whether a limit keeps the claim from going on to another job. A group beyond its quota goes on only while nobody
   * else waits.
   */
  #isBarred({ kind, size }: HeldClaim): boolean {
    const { autoclusters, sharing } = this.#options;
    // What the claim holds is counted already.
    const barred = sharing.gate().bars({ ...kind, size: { ...size, cpus: 0 } }, !autoclusters.othersWait(kind));
    return barred !== undefined;
  }

  /**
   * Whether someone else who could use the resources of the claim should go first: an owner with a better priority, or
   * a more urgent job of the same owner.
   */
  #isPassed(worker: Worker, { kind, size }: HeldClaim): boolean {
    const { autoclusters, collector, priorities, ports } = this.#options;
    const rivals = kind.queue.length === 0 ? [] : autoclusters.rivals(kind);
    if (rivals.length === 0) return false;
    // With many rivals, a negotiation cycle is cheaper than checking each here.
    if (rivals.length > FEW) return true;
    const order = priorities.order(
      new Set([kind.owner, ...rivals.map(({ owner }) => owner)]),
      new Map([[kind.owner, -size.cpus]]),
    );
    const first = new Set(order.slice(0, order.indexOf(kind.owner) + 1));
    const space = plus(freeNow(worker), size);
    const machine = offerAd(worker.ad, space);
    const matchmaker = new Matchmaker({ now: Math.floor(ports.now() / 1000) });
    return rivals.some(
      (rival) =>
        first.has(rival.owner) &&
        fits(rival.size, space) &&
        !collector.refuses(worker, rival) &&
        collector.timeOf(worker).timeToLive > timeNeeded(rival) &&
        matchmaker.matches(rival.ad, machine),
    );
  }

  /** The worker did not take the attempt: releases its claim. */
  drop(worker: Worker, attempt: Attempt): void {
    const { collector, priorities, ports, later } = this.#options;
    const claim = attempt.claim === undefined ? undefined : worker.claims.get(attempt.claim);
    if (!claim || claim.behind.delete(attempt.key)) return;
    claim.key = firstOf(claim.behind);
    if (claim.key !== undefined) return;
    collector.release(worker, claim.id);
    priorities.use(claim.kind.owner, -claim.size.cpus);
    later(() => ports.toWorker(worker.instance, { t: 'release', claim: claim.id }));
    this.wanting = true;
  }

  #grant(attempt: Attempt, worker: Worker, claim: string): void {
    crashPoint('central-manager.before-grant');
    const { key, client, request } = attempt;
    const { instance, boot, token } = worker;
    Object.assign(attempt, { phase: 'granted', worker: instance, boot, claim, token });
    delete attempt.why;
    this.#options.sharing.starts(attempt);
    this.#options.throttle.starts(attempt);
    const whose = isKeptByClient(request.spec) ? { client } : {};
    this.#options.ports.journal.add({ r: 'g', key, worker: instance, boot, claim, token, ...whose });
    this.#options.later(() => this.#start(attempt, worker, claim));
  }

  #start(attempt: Attempt, worker: Worker, claim: string): void {
    const { key, request, kind } = attempt;
    const { ports, collector } = this.#options;
    const { toWorker } = ports;
    // While the grant was being written, the worker may have reconnected and reported that it does not know it.
    const stands = attempt.claim === claim && attempt.worker === worker.instance && attempt.phase === 'granted';
    if (!kind || !stands || collector.get(worker.instance) !== worker) return;
    crashPoint('central-manager.saved-grant');
    if (!worker.known.has(kind.id)) {
      worker.known.add(kind.id);
      toWorker(worker.instance, { t: 'kind', id: kind.id, ad: kind.texts });
    }
    if ('base' in request.spec && !worker.known.has(request.spec.base)) {
      const spec = this.bases.get(request.spec.base);
      worker.known.add(request.spec.base);
      if (spec) toWorker(worker.instance, { t: 'base', id: request.spec.base, spec });
    }
    const { size } = kind;
    const { spec, lease } = request;
    const own = 'base' in spec ? {} : { ad: instead(kind.texts, request.ad), ...slotOf(worker, claim) };
    const waits = attempt.node ? ({ waits: true } as const) : {};
    toWorker(worker.instance, { t: 'start', key, claim, kind: kind.id, size, spec, lease, ...own, ...waits });
  }
}

/** Removes and returns the first. */
function firstOf(keys: Set<AttemptKey>): AttemptKey | undefined {
  const [first] = keys;
  if (first !== undefined) keys.delete(first);
  return first;
}

function slotOf(worker: Worker, claim: string): { readonly slot?: string } {
  const slot = slotName(worker, claim);
  return slot === undefined ? {} : { slot };
}

/** What an ad has instead of another: most of the ads of one kind's jobs are equal. */
function instead(of: AttrTexts, ad: AttrTexts): AttrTexts {
  const own: Record<string, string | null> = {};
  for (const name in ad) if (ad[name] !== of[name]) own[name] = ad[name] ?? null;
  for (const name in of) if (!Object.hasOwn(ad, name)) own[name] = null;
  return own;
}
