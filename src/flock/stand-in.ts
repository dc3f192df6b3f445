import { connect } from 'node:net';
import type { AttrTexts } from '../job/attrs.ts';
import { quoted } from '../job/values.ts';
import { FREE_DISK } from '../pool/host/full-disk.ts';
import { sizeTexts } from '../pool/wire/ads.ts';
import type { Token } from '../pool/wire/auth.ts';
import { NOTHING, plus } from '../pool/wire/slots.ts';
import type { FromCentralManager, FromWorker, HeldAttempt, Size } from '../pool/wire/wire.ts';
import { Link } from '../pool/worker/link.ts';
import { PASSED_HERE } from './clauses.ts';
import type { LentKind } from './flock-wire.ts';
import { FLOCK_HOPS, FLOCK_POOL, FLOCK_WAY } from './lists.ts';

export type Order = Exclude<FromCentralManager, { t: 'challenge' | 'denied' | 'welcome' | 'pong' | 'answer' }>;

export interface StandInOptions {
  /** Whose machines it stands for, as people call that pool, */
  readonly pool: string;
  /** and how many pools beyond the partner it is. */
  readonly hops: number;
  /** The worker's name, unique in the pool. */
  readonly worker: string;
  readonly token: Token;
  /** The central manager's socket for workers on this machine. */
  readonly socket: string;
  readonly held: () => readonly HeldAttempt[];
  readonly take: (worker: string, order: Order, kinds: ReadonlyMap<string, AttrTexts>) => void;
  readonly log: (message: string, facts?: object) => void;
}

/** What the slots of a partner show at this moment. */
export interface Shown {
  readonly kind: LentKind | undefined;
  /** What its jobs there hold. */
  readonly running: Size;
  /** The agents by which it is reached. */
  readonly way: string;
  /** Whether our jobs may go there now, and which. */
  readonly requirements: string;
  readonly isOpen: boolean;
  /** Whether jobs that we pass on for others may. */
  readonly passes: boolean;
  /** Why nothing is offered. */
  readonly refusal: string | undefined;
}

const LONGEST_RETRY_MS = 500;
/** It has no boot of its own: what it holds is in the gateway's journal, which survives one. */
const BOOT = 'flock';
/** More than any partner has. */
const DISK_KB = 2 ** 40;
/** Below any rank that a machine of our own gives to a job: ours come first. Partners are in random order, and before the pools beyond. */
const RANK = { top: -1_000_000, range: 1000 } as const;

/** A worker of our pool that stands for a kind of a partner's machines. */
export class StandIn {
  readonly worker: string;
  readonly #options: StandInOptions;
  readonly #link: Link;
  readonly #kinds = new Map<string, AttrTexts>();
  #ad: AttrTexts = {};
  /** From the first greeting on, the disk is that of the partner, of which the ad says what is free: the central manager keeps it. */
  #size: Size = { ...NOTHING, diskKb: DISK_KB };
  #told = '';
  #rank: number = RANK.top;
  #ranked = '';

  constructor(options: StandInOptions) {
    this.#options = options;
    this.worker = options.worker;
    this.#link = new Link({
      token: options.token,
      instance: options.worker,
      boot: BOOT,
      size: () => this.#size,
      dial: () =>
        new Promise((resolve, reject) => {
          const made = connect({ path: options.socket });
          made.once('connect', () => resolve(made));
          made.once('error', reject);
        }),
      longestRetryMs: LONGEST_RETRY_MS,
      ad: () => this.#ad,
      held: options.held,
      take: (order) => {
        if (order.t === 'kind') this.#kinds.set(order.id, order.ad);
        else options.take(this.worker, order, this.#kinds);
      },
      onUp: () => options.log('the slots of a partner are in the pool', { worker: this.worker }),
      onDown: () => this.#kinds.clear(),
      onDenied: (message) => options.log('the slots of a partner were refused', { worker: this.worker, message }),
    });
  }

  open(): void {
    this.#link.open();
  }

  /** Seconds since the central manager demonstrably heard from it. */
  get silence(): number {
    return this.#link.silence;
  }

  say(message: FromWorker, bytes?: Uint8Array): void {
    this.#link.say(message, bytes);
  }

  ask(question: Parameters<Link['asking']['ask']>[0]): ReturnType<Link['asking']['ask']> {
    return this.#link.asking.ask(question);
  }

  /** Shows what the partner offers; the central manager is told only what has changed. */
  show(shown: Shown): void {
    const offered = JSON.stringify(shown.kind ?? null);
    if (offered !== this.#ranked) {
      this.#ranked = offered;
      this.#rank = Math.floor(RANK.top - (this.#options.hops + Math.random()) * RANK.range);
    }
    const { ad, size } = slotsOf(this.#options, shown, this.#rank);
    const told = JSON.stringify([ad, size]);
    if (told === this.#told) return;
    this.#told = told;
    const gone = Object.keys(this.#ad).filter((name) => !Object.hasOwn(ad, name));
    this.#ad = ad;
    this.#size = size;
    this.#link.say({ t: 'ad', ad: { ...Object.fromEntries(gone.map((name) => [name, null])), ...ad }, size });
  }

  close(message: string): void {
    this.#link.end(message);
  }
}

function slotsOf(
  { pool, hops, worker }: StandInOptions,
  shown: Shown,
  rank: number,
): { readonly ad: AttrTexts; readonly size: Size } {
  const { kind, running, way, requirements, isOpen, passes, refusal } = shown;
  const offered = kind?.all ?? NOTHING;
  // What is free is said by the ad, as by any worker.
  const size = { ...plus(offered, running), diskKb: DISK_KB };
  const texts: AttrTexts = {
    ...kind?.ad,
    MyType: quoted('Machine'),
    Name: quoted(`slot1@${worker}`),
    Machine: quoted(worker),
    [FLOCK_POOL]: quoted(pool),
    [FLOCK_HOPS]: String(hops),
    [FLOCK_WAY]: quoted(way),
    GryphusWorker: quoted(worker),
    FileSystemDomain: quoted(`flock.${pool}`),
    UidDomain: quoted(`flock.${pool}`),
    PartitionableSlot: 'true',
    SlotType: quoted('Partitionable'),
    SlotID: '1',
    SlotWeight: 'Cpus',
    FlockMachines: String(kind?.machines ?? 0),
    FlockOpen: String(isOpen),
    FlockPasses: String(passes),
    TotalCpus: String(size.cpus),
    TotalMemory: String(size.memoryMb),
    TotalDisk: String(offered.diskKb),
    ...(kind ? { [FREE_DISK]: String(offered.diskKb) } : {}),
    TotalGPUs: String(size.gpus),
    HasFileTransfer: 'true',
    HasFalseResults: 'true',
    START: `(MY.FlockOpen || ${PASSED_HERE}) && ${requirements}`,
    Rank: `${rank}.0`,
    Requirements: 'START',
    ...(refusal === undefined ? {} : { GryphusOwner: quoted(refusal) }),
  };
  return { ad: { ...texts, ...sizeTexts(texts, { ...size, diskKb: offered.diskKb }) }, size };
}
