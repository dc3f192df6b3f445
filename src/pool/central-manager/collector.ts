import { GryphusError } from '../../errors.ts';
import type { ClassAd } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { adFrom } from '../wire/ads.ts';
import type { Attempt, Autocluster } from './attempts.ts';
import type { CentralManagerPorts } from './central-manager-ports.ts';
import type { Offer } from './negotiator.ts';
import { folded, type Significance } from './significance.ts';
import { FREE_DISK, LEAST_KB } from '../host/full-disk.ts';
import { fits, minus, plus } from '../wire/slots.ts';
import type { HeldAttempt, Size } from '../wire/wire.ts';

/** A claim on a part of a worker: a dynamic slot. */
export interface HeldClaim {
  readonly id: string;
  /** The slot's number: the lowest that was free when it was created. */
  readonly number: number;
  readonly kind: Autocluster;
  readonly size: Size;
  /** Unix milliseconds. */
  readonly since: number;
  /** The same, by the central manager's monotonic clock. */
  readonly madeAt: number;
  /** The attempt that is running under it. */
  key: AttemptKey | undefined;
  /** The attempts granted to run after it, one by one. */
  readonly behind: Set<AttemptKey>;
  /** It was granted by the dedicated scheduler: it ends with what runs under it. */
  readonly dedicated?: true;
  /** What is running under it is being preempted for a job of this kind. */
  promised?: Autocluster;
}

/** One worker, as it described itself and as we know it. */
export interface Worker {
  readonly instance: string;
  /** The token that admitted it. */
  readonly token: string;
  readonly name: string;
  readonly host: string;
  readonly site: string;
  readonly boot: string;
  size: Size;
  texts: AttrTexts;
  ad: ClassAd;
  connected: boolean;
  draining: boolean;
  /** Unix milliseconds when it last connected or disconnected. */
  since: number;
  /** The same by the central manager's monotonic clock, followed by the time of its last ad. */
  movedAt: number;
  heardAt: number;
  /** It is connected, but has not been heard for too long. */
  silent: boolean;
  free: Size;
  readonly claims: Map<string, HeldClaim>;
  /** The attempts that it reported holding when it connected. */
  held: Map<AttemptKey, HeldAttempt>;
  /** The kinds and base specs that have been sent to it. */
  readonly known: Set<string>;
  /** Kinds that it refused: until when they are not offered to it again, and the length of that wait. Milliseconds. */
  readonly refused: Map<unknown, { readonly until: number; readonly wait: number }>;
}

/** The maximum length of a machine's ad, in characters: it is sent to everyone who looks at the pool. */
const MOST_AD = 200_000;
/**
 * How long a kind that a worker refused is not offered to it again: initially, and at most, after repeated refusals.
 * Milliseconds.
 */
const REFUSED_MS = 5_000;
const LONGEST_REFUSED_MS = 80_000;
/** An allocation that ends so many seconds later than it was known to was extended. */
const LONGER = 30;

/** The pool's workers and what they have free. Disconnected workers offer nothing. */
export class Collector {
  readonly #workers = new Map<string, Worker>();
  readonly #ports: Pick<CentralManagerPorts, 'now' | 'clock'>;
  readonly #significance: Significance;
  /** By a worker's ad, as long as the same attributes are significant. */
  readonly #shapes = new WeakMap<AttrTexts, { readonly version: number; readonly shape: string }>();
  /**
   * By the central manager's monotonic clock: waiting for workers of an earlier central manager is counted from here.
   */
  readonly startedAt: number;
  /** When the first of the refusals ends that keep workers from being offered, by the same clock. */
  refusalEnds = Number.POSITIVE_INFINITY;

  constructor(ports: Pick<CentralManagerPorts, 'now' | 'clock'>, significance: Significance) {
    this.#ports = ports;
    this.startedAt = ports.clock();
    this.#significance = significance;
  }

  make(
    about: Pick<Worker, 'instance' | 'token' | 'site' | 'boot' | 'size'>,
    texts: AttrTexts,
    name: string,
    host: string,
  ): Worker {
    if (lengthOf(texts) > MOST_AD) throw new GryphusError('protocol-error', 'its ad is too long');
    const all = folded(texts);
    this.#significance.learn('machine', texts, all);
    return {
      ...about,
      name,
      host,
      texts,
      ad: adFrom(texts),
      connected: true,
      draining: false,
      since: this.#ports.now(),
      movedAt: this.#ports.clock(),
      heardAt: this.#ports.clock(),
      silent: false,
      free: about.size,
      claims: new Map(),
      held: new Map(),
      known: new Set(),
      refused: new Map(),
    };
  }

  add(worker: Worker): void {
    this.#workers.set(worker.instance, worker);
  }

  get(instance: string): Worker | undefined {
    return this.#workers.get(instance);
  }

  remove(instance: string): void {
    this.#workers.delete(instance);
  }

  all(): Iterable<Worker> {
    return this.#workers.values();
  }

  /** True if it changed in a way that matters for matching. */
  update(worker: Worker, change: AttrTexts, size?: Size): boolean {
    const before = this.#shapeOf(worker);
    const was = spaceOf(worker);
    const lasted = this.timeOf(worker).timeToLive;
    const matters = Object.keys(change).some(
      (name) => change[name] !== worker.texts[name] && this.#significance.has('machine', name.toLowerCase()),
    );
    worker.texts = { ...worker.texts, ...change };
    if (lengthOf(worker.texts) > MOST_AD) throw new GryphusError('protocol-error', 'its ad is too long');
    worker.ad = adFrom(worker.texts);
    if (matters) this.#significance.learn('machine', worker.texts, folded(worker.texts));
    // Its load, its free memory and the time, which change always, matter to few jobs.
    else this.#shapes.set(worker.texts, { version: this.#significance.version, shape: before });
    if (size) this.#resize(worker, size);
    worker.heardAt = this.#ports.clock();
    const space = spaceOf(worker);
    const more = space > was || this.timeOf(worker).timeToLive > lasted + LONGER;
    // If nothing is claimed, all free disk space is the worker's.
    if (worker.claims.size === 0 && Number.isFinite(space)) {
      worker.size = { ...worker.size, diskKb: space };
      worker.free = worker.size;
    }
    if (before !== this.#shapeOf(worker)) worker.refused.clear();
    else return more || size !== undefined;
    return true;
  }

  /** Running attempts continue even if they no longer fit. */
  #resize(worker: Worker, size: Size): void {
    worker.size = { ...size, diskKb: worker.size.diskKb };
    worker.free = [...worker.claims.values()].reduce((left, claim) => minus(left, claim.size), worker.size);
  }

  /** Whether it recently refused such jobs. */
  refuses(worker: Worker, kind: unknown): boolean {
    return (worker.refused.get(kind)?.until ?? Number.NEGATIVE_INFINITY) > this.#ports.clock();
  }

  refuse(worker: Worker, kind: unknown): void {
    const now = this.#ports.clock();
    const last = worker.refused.get(kind);
    const wait = Math.min(LONGEST_REFUSED_MS, last ? last.wait * 2 : REFUSED_MS);
    worker.refused.set(kind, { until: now + wait, wait });
    this.refusalEnds = Math.min(this.refusalEnds, now + wait);
  }

  #shapeOf({ texts }: Worker): string {
    const { version } = this.#significance;
    const known = this.#shapes.get(texts);
    if (known?.version === version) return known.shape;
    const shape = this.#significance.signature('machine', folded(texts));
    this.#shapes.set(texts, { version, shape });
    return shape;
  }

  /** What is free now, of connected workers; `sizes`: of those that have space for one of these. */
  offers(sizes?: readonly Size[]): Offer<Worker>[] {
    const now = this.#ports.clock();
    const offers: Offer<Worker>[] = [];
    this.refusalEnds = Number.POSITIVE_INFINITY;
    for (const worker of this.#workers.values()) {
      for (const [kind, { until, wait }] of worker.refused) {
        if (until + wait <= now) worker.refused.delete(kind);
        else if (until > now) this.refusalEnds = Math.min(this.refusalEnds, until);
      }
      if (worker.free.cpus <= 0 || sizes?.some((size) => fits(size, worker.free)) === false) continue;
      if (!takesMore(worker)) continue;
      offers.push({
        worker,
        ad: worker.ad,
        free: freeNow(worker),
        shape: this.#significance.dynamic ? worker.instance : this.#shapeOf(worker),
        timeToLive: this.timeOf(worker).timeToLive,
        refuses: (kind) => this.refuses(worker, kind),
      });
    }
    return offers;
  }

  /** How long the worker will exist, as far as it has said. */
  timeOf(worker: Worker): { readonly timeToLive: number } {
    const said = Number(worker.texts['TimeToLive'] ?? 'x');
    if (!Number.isFinite(said)) return { timeToLive: Number.POSITIVE_INFINITY };
    return { timeToLive: said - (this.#ports.clock() - worker.heardAt) / 1000 };
  }

  /** Of connected workers. */
  capacity(): { readonly cpus: number; readonly freeCpus: number } {
    let cpus = 0;
    let freeCpus = 0;
    for (const { connected, size, free } of this.#workers.values()) {
      if (!connected) continue;
      cpus += size.cpus;
      freeCpus += free.cpus;
    }
    return { cpus, freeCpus };
  }

  claim(worker: Worker, claim: Omit<HeldClaim, 'number' | 'since' | 'madeAt'>): HeldClaim {
    const times = { since: this.#ports.now(), madeAt: this.#ports.clock() };
    const held = { ...claim, ...times, number: freeNumber(worker) };
    worker.claims.set(claim.id, held);
    worker.free = minus(worker.free, claim.size);
    return held;
  }

  /**
   * Restores the claim of an attempt that is already running on a worker that has returned; false if the claim exists.
   */
  keep(worker: Worker, attempt: Attempt): boolean {
    const { claim: id, kind, key } = attempt;
    if (id === undefined || !kind || worker.claims.has(id)) return false;
    const dedicated = attempt.node ? ({ dedicated: true } as const) : {};
    this.claim(worker, { id, kind, size: kind.size, key, behind: new Set(), ...dedicated });
    return true;
  }

  release(worker: Worker, id: string): void {
    const claim = worker.claims.get(id);
    if (!claim) return;
    worker.claims.delete(id);
    worker.free = plus(worker.free, claim.size);
  }
}

function lengthOf(texts: AttrTexts): number {
  return Object.entries(texts).reduce((sum, [name, text]) => sum + name.length + (text?.length ?? 0), 0);
}

/** The free disk space that it last reported, in KB, whoever uses the rest. */
function spaceOf({ texts }: Worker): number {
  const said = Number(texts[FREE_DISK] ?? 'x');
  return Number.isFinite(said) ? said : Number.POSITIVE_INFINITY;
}

/** Whether attempts can be granted to it now. */
export function takesMore(worker: Worker): boolean {
  return worker.connected && !worker.silent && !worker.draining && hasSpace(worker);
}

/** Whether it has space to record what it is given. */
export function hasSpace(worker: Worker): boolean {
  return spaceOf(worker) >= LEAST_KB;
}

/** What can be claimed of it: no more disk space than is free there. */
export function freeNow(worker: Worker): Size {
  return { ...worker.free, diskKb: Math.max(0, Math.min(worker.free.diskKb, spaceOf(worker))) };
}

function freeNumber({ claims }: Worker): number {
  const taken = new Set([...claims.values()].map(({ number }) => number));
  let number = 1;
  while (taken.has(number)) number += 1;
  return number;
}

/** HTCondor's name of the slot under a claim. */
export function slotName(worker: Worker, claim: string | undefined): string | undefined {
  const held = claim === undefined ? undefined : worker.claims.get(claim);
  return held && `slot1_${held.number}@${worker.name}`;
}
