import type { AttrTexts } from '../../job/attrs.ts';
import { inAd, readBoolean, readString } from '../../job/values.ts';
import { adFrom } from '../wire/ads.ts';
import { type Attempt, type Autocluster, goesBefore } from './attempts.ts';
import type { AttemptRequest } from '../wire/client-wire.ts';
import type { WantedKind } from './negotiator.ts';
import { folded, Significance } from './significance.ts';

/** A worker leaves a minute before its allocation ends; a job of unknown run time is not started for less than half a minute, in seconds. */
const LEAST_TIME = 90;
/** A job that goes on at the next worker: a quarter of a minute is worth its move. */
const LEAST_TIME_TO_MOVE = 75;
/** Tasks whose mean run time is below this are quick, in seconds. */
const QUICK_SECONDS = 0.05;
/** How many of a kind must have been seen before the mean is used. */
const SEEN = 10;
/** More than this must be waiting. */
const MANY = 100;

/** So many waiting attempts of a kind are looked at for gaps before a parallel job. */
const LOOKED_AT = 1000;
/** If there are more autoclusters than this, those without waiting attempts are dropped. */
const MOST_AUTOCLUSTERS = 1000;

/** Groups attempts into kinds that no match can tell apart (autoclusters), and queues the waiting ones by kind. */
export class Autoclusters {
  readonly significance = new Significance();
  readonly #autoclusters = new Map<string, Autocluster>();
  /** Autoclusters with waiting attempts. */
  readonly #waiting = new Set<Autocluster>();
  /** Autoclusters that have been replaced. */
  readonly #gone = new WeakSet<Autocluster>();
  #version = 0;
  #count = 0;

  /** Looked up by the ad object, which many requests share. */
  readonly #byAd = new WeakMap<AttrTexts, { readonly version: number; readonly kind: Autocluster }>();

  of(request: AttemptRequest): Autocluster {
    const shared = this.#byAd.get(request.ad);
    const { version, dynamic } = this.significance;
    if (shared?.version === version && !dynamic && !this.#gone.has(shared.kind)) return shared.kind;
    const kind = this.#find(request);
    this.#byAd.set(request.ad, { version: this.significance.version, kind });
    return kind;
  }

  #find(request: AttemptRequest): Autocluster {
    const all = folded(request.ad);
    this.significance.learn('job', request.ad, all);
    if (this.significance.version !== this.#version) this.#regroup();
    const { cpus, memoryMb, diskKb, gpus, others } = request.size;
    const more = others === undefined ? '' : JSON.stringify(others);
    const own = this.significance.dynamic ? request.key : '';
    const moves = goesOnElsewhere(request.ad);
    const signature = `${request.owner}\0${moves}\0${cpus},${memoryMb},${diskKb},${gpus}${more}\0${own}\0${this.significance.signature('job', all)}`;
    const known = this.#autoclusters.get(signature);
    if (known) return known;
    const kind: Autocluster = {
      id: `k${++this.#count}`,
      owner: request.owner,
      size: request.size,
      texts: request.ad,
      ad: adFrom(request.ad),
      queue: [],
      mean: 0,
      seen: 0,
      moves,
    };
    this.#autoclusters.set(signature, kind);
    return kind;
  }

  /** A new significant attribute may split existing kinds. */
  #regroup(): void {
    this.#version = this.significance.version;
    // Claims still refer to the old kinds, whose queues must therefore be empty.
    const waiting = [...this.#autoclusters.values()].flatMap((kind) => kind.queue.splice(0));
    for (const kind of this.#autoclusters.values()) this.#gone.add(kind);
    this.#autoclusters.clear();
    this.#waiting.clear();
    waiting.sort((a, b) => (goesBefore(a, b) ? -1 : 1));
    for (const attempt of waiting) this.enqueue(attempt);
  }

  enqueue(attempt: Attempt): void {
    // It may have been granted earlier, under a kind that has been replaced.
    attempt.kind = this.of(attempt.request);
    const { queue } = attempt.kind;
    const last = queue.at(-1);
    if (!last || goesBefore(last, attempt)) queue.push(attempt);
    else queue.splice(placeIn(queue, attempt), 0, attempt);
    this.#waiting.add(attempt.kind);
  }

  dequeue(attempt: Attempt): void {
    const { kind } = attempt;
    const at = kind && attempt.phase === 'idle' ? kind.queue.indexOf(attempt) : -1;
    if (!kind || at < 0) return;
    kind.queue.splice(at, 1);
    if (kind.queue.length === 0) this.#waiting.delete(kind);
  }

  /** Removes and returns the next waiting attempt. */
  take(kind: Autocluster): Attempt | undefined {
    const next = kind.queue.shift();
    if (kind.queue.length === 0) this.#waiting.delete(kind);
    return next;
  }

  wanted(): WantedKind<Autocluster>[] {
    if (this.significance.version !== this.#version) this.#regroup();
    if (this.#autoclusters.size > MOST_AUTOCLUSTERS)
      for (const [signature, kind] of this.#autoclusters) if (!this.#waiting.has(kind)) this.#drop(signature, kind);
    const firsts = [...this.#waiting].flatMap((kind) => (kind.queue[0] ? [{ kind, first: kind.queue[0] }] : []));
    firsts.sort((a, b) => (goesBefore(a.first, b.first) ? -1 : 1));
    return firsts.map(({ kind, first }, order) => ({
      kind,
      owner: kind.owner,
      ad: kind.ad,
      size: kind.size,
      waiting: kind.queue.length,
      prio: first.request.prio,
      order,
      needs: timeNeeded(kind),
    }));
  }

  #drop(signature: string, kind: Autocluster): void {
    this.#autoclusters.delete(signature);
    this.#gone.add(kind);
  }

  /** Records a run time of this kind, in seconds; the mean follows recent run times. */
  learn(kind: Autocluster, seconds: number): void {
    // The machine's clock was set during the run.
    if (seconds < 0) return;
    kind.seen += 1;
    kind.mean += (seconds - kind.mean) / Math.min(kind.seen, 20);
  }

  /** A run of this kind takes longer than its mean suggests, which is no longer trusted. */
  mistook(kind: Autocluster): void {
    kind.mean = Math.max(kind.mean, 2 * QUICK_SECONDS);
  }

  /**
   * The first of its waiting attempts by how long they run at the most, in seconds: their limits, or what runs of their
   * kind showed so far. Those of which nothing is known are left out.
   */
  byLength(kind: Autocluster): Map<number, Attempt[]> {
    const found = new Map<number, Attempt[]>();
    for (const attempt of kind.queue.slice(0, LOOKED_AT)) {
      const seconds = longestOf(kind, attempt);
      const same = seconds === undefined ? undefined : found.get(seconds);
      if (same) same.push(attempt);
      else if (seconds !== undefined) found.set(seconds, [attempt]);
    }
    return found;
  }

  /**
   * Whether attempts of this kind end faster than a message exchange takes, and so many are waiting that no other
   * worker lacks work.
   */
  areQuick(kind: Autocluster): boolean {
    const first = kind.queue[0];
    return first !== undefined && kind.queue.length > MANY && kind.seen >= SEEN && kind.mean < QUICK_SECONDS;
  }

  /** Whether attempts of another kind are waiting. */
  othersWait(kind: Autocluster): boolean {
    return this.#waiting.size > (this.#waiting.has(kind) ? 1 : 0);
  }

  /**
   * Waiting autoclusters that may precede the next attempt of this one: those of other owners, and more urgent ones of
   * the same owner.
   */
  rivals(kind: Autocluster): Autocluster[] {
    const next = kind.queue[0]?.request.prio ?? Number.NEGATIVE_INFINITY;
    return [...this.#waiting].filter(
      ({ owner, queue }) => owner !== kind.owner || (queue[0]?.request.prio ?? next) > next,
    );
  }
}

/** Whether what it has done goes with it to the next worker: `want_checkpoint`, or ON_EXIT_OR_EVICT. */
function goesOnElsewhere(ad: AttrTexts): boolean {
  const source = inAd(ad);
  return (
    readBoolean(source, 'WantCheckpoint') === true ||
    readString(source, 'WhenToTransferOutput')?.toUpperCase() === 'ON_EXIT_OR_EVICT'
  );
}

/**
 * How long a worker's allocation must last for the first waiting attempt, in seconds: until its expected end, if it cannot
 * move.
 */
export function timeNeeded({ queue, mean, moves, seen }: Autocluster): number {
  if (moves) return LEAST_TIME_TO_MOVE;
  const first = queue[0]?.request.spec;
  if (first && 'walltimeSeconds' in first && first.walltimeSeconds !== undefined)
    return LEAST_TIME + first.walltimeSeconds;
  return seen === 0 ? LEAST_TIME : LEAST_TIME + mean;
}

/** How many times the mean run time of its kind a run is not expected to exceed. */
const MARGIN = 2;

/** How long a run takes at the most, in seconds, as far as that can be known. */
export function longestOf({ mean, seen }: Autocluster, attempt: Attempt | undefined): number | undefined {
  const spec = attempt?.request.spec;
  if (spec && 'walltimeSeconds' in spec && spec.walltimeSeconds !== undefined) return spec.walltimeSeconds;
  return seen >= SEEN ? MARGIN * mean : undefined;
}

/** Where an attempt belongs in a queue. */
function placeIn(queue: readonly Attempt[], attempt: Attempt): number {
  let [from, to] = [0, queue.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const one = queue[middle];
    if (one && goesBefore(one, attempt)) from = middle + 1;
    else to = middle;
  }
  return from;
}
