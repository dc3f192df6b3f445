import type { AttrTexts } from '../job/attrs.ts';
import { adFrom } from './ads.ts';
import type { Attempt, AttemptRequest, JobKind } from './attempts.ts';
import { isKeptByClient } from './desk-journal.ts';
import type { Wanted } from './negotiator.ts';
import { folded, Significance } from './significance.ts';

/** Tasks that take less on the mean are quick, seconds. */
const QUICK_SECONDS = 0.05;
/** So many of a kind must have been seen before that is known. */
const SEEN = 10;
/** More than this must wait. */
const MANY = 100;

/** Sorts attempts into kinds that no match can tell apart (autoclusters), each with those that wait. */
export class Kinds {
  readonly significance = new Significance();
  readonly #kinds = new Map<string, JobKind>();
  /** Kinds that others have taken the place of. */
  readonly #gone = new WeakSet<JobKind>();
  #version = 0;
  #count = 0;

  /** By the ad itself, where many requests share one. */
  readonly #byAd = new WeakMap<AttrTexts, { readonly version: number; readonly kind: JobKind }>();

  of(request: AttemptRequest): JobKind {
    const shared = this.#byAd.get(request.ad);
    const { version, dynamic } = this.significance;
    if (shared?.version === version && !dynamic && !this.#gone.has(shared.kind)) return shared.kind;
    const kind = this.#find(request);
    this.#byAd.set(request.ad, { version: this.significance.version, kind });
    return kind;
  }

  #find(request: AttemptRequest): JobKind {
    const all = folded(request.ad);
    this.significance.learn('job', request.ad, all);
    if (this.significance.version !== this.#version) this.#regroup();
    const { cpus, memoryMb, diskKb, gpus } = request.size;
    const own = this.significance.dynamic ? request.key : '';
    const signature = `${request.owner}\0${cpus},${memoryMb},${diskKb},${gpus}\0${own}\0${this.significance.signature('job', all)}`;
    const known = this.#kinds.get(signature);
    if (known) return known;
    const kind: JobKind = {
      id: `k${++this.#count}`,
      owner: request.owner,
      size: request.size,
      texts: request.ad,
      ad: adFrom(request.ad),
      queue: [],
      mean: 0,
      seen: 0,
    };
    this.#kinds.set(signature, kind);
    return kind;
  }

  /** A new significant attribute may tell apart what waits as one kind. */
  #regroup(): void {
    this.#version = this.significance.version;
    // Claims still name the old kinds: nothing may be taken from those any more.
    const waiting = [...this.#kinds.values()].flatMap((kind) => kind.queue.splice(0));
    for (const kind of this.#kinds.values()) this.#gone.add(kind);
    this.#kinds.clear();
    waiting.sort((a, b) => a.order - b.order);
    for (const attempt of waiting) this.enqueue(attempt);
  }

  enqueue(attempt: Attempt): void {
    // What was granted before may be of a kind that is no more.
    attempt.kind = this.of(attempt.request);
    const { queue } = attempt.kind;
    let at = queue.length;
    for (; at > 0; at--) {
      const before = queue[at - 1];
      if (!before || goesBefore(before, attempt)) break;
    }
    queue.splice(at, 0, attempt);
  }

  dequeue(attempt: Attempt): void {
    const queue = attempt.kind?.queue ?? [];
    const at = attempt.phase === 'idle' ? queue.indexOf(attempt) : -1;
    if (at >= 0) queue.splice(at, 1);
  }

  /** The next that waits. */
  take(kind: JobKind): Attempt | undefined {
    return kind.queue.shift();
  }

  wanted(): Wanted<JobKind>[] {
    const all: Wanted<JobKind>[] = [];
    for (const [signature, kind] of this.#kinds) {
      const first = kind.queue[0];
      if (!first) {
        if (this.#kinds.size > 1000) this.#drop(signature, kind);
        continue;
      }
      all.push({
        kind,
        owner: kind.owner,
        ad: kind.ad,
        size: kind.size,
        waiting: kind.queue.length,
        prio: first.request.prio,
        order: first.order,
        expected: this.expected(kind),
      });
    }
    return all;
  }

  #drop(signature: string, kind: JobKind): void {
    this.#kinds.delete(signature);
    this.#gone.add(kind);
  }

  /** One of the kind took so many seconds: the mean follows what its jobs take of late. */
  learn(kind: JobKind, seconds: number): void {
    // Its machine's clock was set meanwhile.
    if (seconds < 0) return;
    kind.seen += 1;
    kind.mean += (seconds - kind.mean) / Math.min(kind.seen, 20);
  }

  /** Seconds that the first of them is expected to take; `undefined`: nobody knows. */
  expected(kind: JobKind): number | undefined {
    const first = kind.queue[0]?.request.spec;
    if (first && 'walltimeSeconds' in first && first.walltimeSeconds !== undefined) return first.walltimeSeconds;
    return kind.seen === 0 ? undefined : kind.mean;
  }

  /** One of the kind takes longer than was thought, whatever those before it took. */
  mistook(kind: JobKind): void {
    kind.mean = Math.max(kind.mean, 2 * QUICK_SECONDS);
  }

  /** A map's tasks that end before word of it could come and go, of which so many wait that no other worker wants for one. */
  areQuick(kind: JobKind): boolean {
    const first = kind.queue[0];
    return (
      first !== undefined &&
      isKeptByClient(first.request.spec) &&
      kind.queue.length > MANY &&
      kind.seen >= SEEN &&
      kind.mean < QUICK_SECONDS
    );
  }

  /** Jobs of other owners, or more urgent ones, wait. */
  othersWait(kind: JobKind): boolean {
    for (const other of this.#kinds.values()) if (other !== kind && other.queue.length > 0) return true;
    return false;
  }
}

function goesBefore(a: Attempt, b: Attempt): boolean {
  if (a.request.prio !== b.request.prio) return a.request.prio > b.request.prio;
  return a.order < b.order;
}
