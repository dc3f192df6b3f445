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
import { minus, plus } from '../wire/slots.ts';
import type { HeldAttempt, Size } from '../wire/wire.ts';

/** A part of a worker that is ours: a dynamic slot. */
export interface HeldClaim {
  readonly id: string;
  /** Of the slot: the lowest that is free when it is made. */
  readonly number: number;
  readonly kind: Autocluster;
  readonly size: Size;
  /** Unix milliseconds. */
  readonly since: number;
  /** The same by the central manager's own clock. */
  readonly madeAt: number;
  /** What runs under it. */
  key: AttemptKey | undefined;
  /** What was granted to run after it, one by one. */
  readonly behind: Set<AttemptKey>;
  /** What runs under it makes room for one of this kind. */
  promised?: Autocluster;
}

/** One worker, as it described itself, and as we know it. */
export interface Worker {
  readonly instance: string;
  /** The token that let it in. */
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
  /** Unix milliseconds of its last coming or going. */
  since: number;
  /** The same, and when it told its ad, by the central manager's own clock. */
  movedAt: number;
  heardAt: number;
  /** Connected, and not heard of for longer than it should take. */
  silent: boolean;
  free: Size;
  readonly claims: Map<string, HeldClaim>;
  /** What it said that it holds when it came. */
  held: Map<AttemptKey, HeldAttempt>;
  /** Autoclusters and bases that it was told of. */
  readonly told: Set<string>;
  /** Autoclusters that it refused: until when they are not offered to it again, and how long that is. Milliseconds. */
  readonly refused: Map<unknown, { readonly until: number; readonly wait: number }>;
}

/** Characters that a machine's ad may have: it is told to everybody who looks at the pool. */
const MOST_AD = 200_000;
/** A worker that refused a kind is not offered it again for so long, at first and where it refuses again; milliseconds. */
const REFUSED_MS = 5_000;
const LONGEST_REFUSED_MS = 80_000;

/** The pool's workers and what is free of them. Who is not connected offers nothing. */
export class Collector {
  readonly #workers = new Map<string, Worker>();
  readonly #ports: Pick<CentralManagerPorts, 'now' | 'clock'>;
  readonly #significance: Significance;
  /** By the central manager's own clock: workers of an earlier central manager are waited for from here on. */
  readonly startedAt: number;

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
      told: new Set(),
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

  /** True where it changed in what matters in a match. */
  update(worker: Worker, change: AttrTexts, size?: Size): boolean {
    const before = this.#shapeOf(worker);
    const was = spaceOf(worker);
    worker.texts = { ...worker.texts, ...change };
    if (lengthOf(worker.texts) > MOST_AD) throw new GryphusError('protocol-error', 'its ad is too long');
    worker.ad = adFrom(worker.texts);
    this.#significance.learn('machine', worker.texts, folded(worker.texts));
    if (size) this.#resize(worker, size);
    worker.heardAt = this.#ports.clock();
    const space = spaceOf(worker);
    const more = space > was;
    // What nothing is claimed of is all that is there.
    if (worker.claims.size === 0 && Number.isFinite(space)) {
      worker.size = { ...worker.size, diskKb: space };
      worker.free = worker.size;
    }
    if (before !== this.#shapeOf(worker)) worker.refused.clear();
    else return more || size !== undefined;
    return true;
  }

  /** What runs there runs on, also where there would be no place for it any more. */
  #resize(worker: Worker, size: Size): void {
    worker.size = { ...size, diskKb: worker.size.diskKb };
    worker.free = [...worker.claims.values()].reduce((left, claim) => minus(left, claim.size), worker.size);
  }

  /** It refused such jobs a moment ago. */
  refuses(worker: Worker, kind: unknown): boolean {
    return (worker.refused.get(kind)?.until ?? Number.NEGATIVE_INFINITY) > this.#ports.clock();
  }

  refuse(worker: Worker, kind: unknown): void {
    const now = this.#ports.clock();
    const last = worker.refused.get(kind);
    const wait = Math.min(LONGEST_REFUSED_MS, last ? last.wait * 2 : REFUSED_MS);
    worker.refused.set(kind, { until: now + wait, wait });
  }

  #shapeOf(worker: Worker): string {
    return this.#significance.signature('machine', folded(worker.texts));
  }

  /** What is free now, of workers that are here. */
  offers(): Offer<Worker>[] {
    const now = this.#ports.clock();
    const offers: Offer<Worker>[] = [];
    for (const worker of this.#workers.values()) {
      if (!takesMore(worker) || worker.free.cpus <= 0) continue;
      for (const [kind, { until, wait }] of worker.refused) if (until + wait <= now) worker.refused.delete(kind);
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

  /** How long it will be there, as far as it said. */
  timeOf(worker: Worker): { readonly timeToLive: number } {
    const said = Number(worker.texts['TimeToLive'] ?? 'x');
    if (!Number.isFinite(said)) return { timeToLive: Number.POSITIVE_INFINITY };
    return { timeToLive: said - (this.#ports.clock() - worker.heardAt) / 1000 };
  }

  /** Of the workers that are here. */
  capacity(): { readonly cpus: number; readonly freeCpus: number } {
    const here = [...this.#workers.values()].filter(({ connected }) => connected);
    return {
      cpus: here.reduce((sum, { size }) => sum + size.cpus, 0),
      freeCpus: here.reduce((sum, { free }) => sum + free.cpus, 0),
    };
  }

  claim(worker: Worker, claim: Omit<HeldClaim, 'number' | 'since' | 'madeAt'>): HeldClaim {
    const times = { since: this.#ports.now(), madeAt: this.#ports.clock() };
    const held = { ...claim, ...times, number: freeNumber(worker) };
    worker.claims.set(claim.id, held);
    worker.free = minus(worker.free, claim.size);
    return held;
  }

  /** Makes the claim under which something runs already, of a worker that came back; false where it is there. */
  keep(worker: Worker, attempt: Attempt): boolean {
    const { claim: id, kind, key } = attempt;
    if (id === undefined || !kind || worker.claims.has(id)) return false;
    this.claim(worker, { id, kind, size: kind.size, key, behind: new Set() });
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

/** KB of its disk that are free by its last word, whoever took the rest. */
function spaceOf({ texts }: Worker): number {
  const said = Number(texts[FREE_DISK] ?? 'x');
  return Number.isFinite(said) ? said : Number.POSITIVE_INFINITY;
}

/** It can be given something now. */
export function takesMore(worker: Worker): boolean {
  return worker.connected && !worker.silent && !worker.draining && hasSpace(worker);
}

/** It can write down what it is given. */
export function hasSpace(worker: Worker): boolean {
  return spaceOf(worker) >= LEAST_KB;
}

/** What of it can be claimed: no more of its disk than is free there. */
export function freeNow(worker: Worker): Size {
  return { ...worker.free, diskKb: Math.max(0, Math.min(worker.free.diskKb, spaceOf(worker))) };
}

function freeNumber({ claims }: Worker): number {
  const taken = new Set([...claims.values()].map(({ number }) => number));
  let number = 1;
  while (taken.has(number)) number += 1;
  return number;
}

/** What HTCondor calls the slot under a claim. */
export function slotName(worker: Worker, claim: string | undefined): string | undefined {
  const held = claim === undefined ? undefined : worker.claims.get(claim);
  return held && `slot1_${held.number}@${worker.name}`;
}
