import type { Attrs, AttrTexts } from '../job/attrs.ts';
import type { Candidates } from './candidate-types.ts';
import type { Json, QueueEvent } from '../job/events.ts';
import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { QueueMark } from '../job/mark.ts';
import type { History, LookWish, Sighting } from './history-types.ts';
import type { RestoredJob } from './restore.ts';
import type {
  Change,
  ChangeResult,
  ClusterRecord,
  ClusterSummary,
  EventEntry,
  JobRecord,
  Lease,
  NoticeInput,
  ProcInput,
  Query,
  QueueOptions,
  SubmitInput,
  Submitted,
  Totals,
} from './types.ts';
import type { Work } from './work-types.ts';

export type * from './candidate-types.ts';
export type * from './history-types.ts';
export { endWithState } from './end-with-state.ts';
export { makeNoMore } from './make-no-more.ts';
export type { RestoredJob } from './restore.ts';
export type * from './types.ts';
export type * from './work-types.ts';

/** One reader's place in the stream, kept in the queue under its name; the stream is trimmed behind the slowest. */
export interface Cursor {
  readonly name: string;
  /** What comes after the saved place; waits up to `blockMs` for something (default 0: does not wait). */
  read(options?: { readonly limit?: number; readonly blockMs?: number }): Promise<readonly EventEntry[]>;
  /** All up to and with this entry is dealt with. */
  save(id: string): Promise<void>;
  /** The reader is no more; nothing is kept for it. */
  drop(): Promise<void>;
}

export interface SubscribeOptions {
  readonly from?: string;
  readonly signal?: AbortSignal;
  /** Only events whose JSON text matches: most readers want few of them, and parsing all costs more than reading them. */
  readonly only?: RegExp;
}

/** What the queue keeps for the manager of one DAG, so that its cost is that of this DAG alone. */
export interface DagStream {
  /** Every submit of this DAG that the queue has or had, also of jobs that have left it. */
  submits(): Promise<readonly { readonly name: string; readonly cluster: number; readonly procs: number }[]>;
  /** Transitions of the DAG's jobs, and what it was told, after `from` ('0': all that is kept). */
  read(
    from: string,
    options?: { readonly limit?: number; readonly blockMs?: number },
    signal?: AbortSignal,
  ): Promise<readonly DagEntry[]>;
  /** For the manager, in order with the jobs' events. */
  tell(what: Json): Promise<void>;
  /** Forgets the events before this one. */
  trim(id: string): Promise<void>;
  /** The DAG has ended: nothing is kept for it any more. */
  drop(): Promise<void>;
}

export interface DagEntry {
  readonly id: string;
  readonly event: QueueEvent | { readonly type: 'told'; readonly what: Json };
}

export interface KvEntry {
  readonly key: string;
  readonly value: string;
  /** Grows with every write of the key; 0: it is not there. */
  readonly version: number;
}

/** Small durable facts, by namespace: sites' learned limits, logs' cursors. */
export interface Kv {
  get(namespace: string, key: string): Promise<KvEntry | undefined>;
  list(namespace: string): Promise<readonly KvEntry[]>;
  /** With `ifVersion`, `undefined` where the key is at another version (0: absent); else the new version. */
  set(namespace: string, key: string, value: string, ifVersion?: number): Promise<number | undefined>;
  delete(namespace: string, key: string): Promise<void>;
}

export type Materialized =
  | { readonly ok: true; readonly nextProc: number }
  | { readonly ok: false; readonly why: 'no-such-cluster' | 'conflict' | 'stale-epoch'; readonly nextProc?: number };

/**
 * The durable queue. Every method rejects with a GryphusError: 'queue-unavailable' (try later) when Redis is away longer
 * than the patience, 'disk-full' when it cannot write. Refusals that daemons expect are values.
 */
export interface Queue {
  /** The agent's id, made once for a state directory: 10 of [A-Za-z0-9]. */
  readonly agent: string;
  /** What its Redis listens at, for messages. */
  readonly where: string;

  /** Resolves when the jobs are on disk. Readers see all of them or none. */
  submit(input: SubmitInput): Promise<Submitted>;
  /** Adds procs from `nextProc` on; refused with 'conflict' where another was faster. `done`: there will be no more. */
  materialize(
    cluster: number,
    input: {
      readonly nextProc: number;
      readonly procs: Iterable<ProcInput>;
      readonly done: boolean;
      readonly lease?: Lease;
    },
  ): Promise<Materialized>;
  /** Clusters that have procs to make. */
  unmaterialized(): Promise<readonly ClusterRecord[]>;

  transition(change: Change, lease?: Lease): Promise<ChangeResult>;
  /** Each change by itself, in order, in one exchange for each thousand. */
  transitionMany(changes: readonly Change[], lease?: Lease): Promise<readonly ChangeResult[]>;
  /** For the scheduler: idle and held jobs get (another) manager and site. */
  route(
    ids: readonly JobId[],
    to: { readonly manager: string; readonly site: string },
    lease?: Lease,
  ): Promise<readonly ChangeResult[]>;
  /**
   * Puts a job that left the queue back into it under its old id, held; false where it is there already. The attributes are the
   * whole ad, as the history has it.
   */
  restore(job: RestoredJob): Promise<boolean>;
  /** Changes what a cluster's jobs share; false where there is no such cluster. */
  editCluster(cluster: number, set: AttrTexts): Promise<boolean>;

  /** In the order asked for; those that are not there are left out. */
  get(ids: readonly JobId[]): Promise<readonly JobRecord[]>;
  /** Streams in the order of ids, a thousand at a time. */
  query(query?: Query): AsyncIterable<JobRecord>;
  /** The same, many at a time: waiting for each of many jobs costs more than reading it. */
  queryChunks(query?: Query): AsyncIterable<readonly JobRecord[]>;
  /**
   * Each job that a wish names once, wherever it is: in the queue, or, once it has left that, in the history. Nothing that moves
   * meanwhile is lost or given twice: every answer about jobs that may have ended comes from here.
   */
  look(wishes: readonly LookWish[], limit?: number): AsyncIterable<Sighting>;
  /** The next jobs in one place: JobPrio descending, then cluster and proc. Default: idle ones. */
  nextJobs(place: {
    readonly manager: string;
    readonly site: string;
    readonly state?: State;
    readonly limit: number;
  }): Promise<readonly JobRecord[]>;
  readonly candidates: Candidates;
  totals(): Promise<Totals>;
  clusters(): Promise<readonly ClusterRecord[]>;
  /** All clusters, or these, in their order; the cost grows with clusters, not with jobs. */
  summaries(clusters?: readonly number[]): Promise<readonly ClusterSummary[]>;
  cluster(cluster: number): Promise<(ClusterRecord & { readonly attrs: Attrs }) | undefined>;

  /** Of the newest event ('0' where there is none): what comes after it is what comes from now on. */
  position(): Promise<string>;
  /** After `from` ('0': all that is kept, '$': only what comes). */
  readEvents(
    from: string,
    options?: { readonly limit?: number; readonly blockMs?: number },
  ): Promise<readonly EventEntry[]>;
  /** Ends when the signal says so. Default from: what comes from now on. */
  subscribe(options?: SubscribeOptions): AsyncIterable<EventEntry>;
  /** A new name starts at `startAt`, default '0'. */
  cursor(name: string, startAt?: '0' | '$'): Promise<Cursor>;
  notice(notice: NoticeInput): Promise<void>;
  /** Forgets the events that every cursor has passed, but keeps the newest `keep` (default 10,000) for those who have no cursor. */
  trimEvents(keep?: number): Promise<void>;

  /** `undefined` while another holds it. `force`: take it from whoever has it. */
  acquireLease(
    name: string,
    ttlMs: number,
    options?: { readonly holder?: string; readonly force?: boolean },
  ): Promise<Lease | undefined>;
  /** False: it is another's now, stop. */
  renewLease(lease: Lease, ttlMs: number): Promise<boolean>;
  releaseLease(lease: Lease): Promise<void>;
  /** Differs after every renewal; `undefined` where nobody has the lease. */
  leaseMark(name: string): Promise<string | undefined>;

  /** How far it is. */
  mark(): Promise<QueueMark>;
  /**
   * Where this queue and the one that made the mark went apart: the last cluster id that both know. `undefined`: this queue has
   * been at the mark itself. Otherwise it is an older copy of that one.
   */
  divergence(seen: QueueMark): Promise<number | undefined>;
  /** Clusters submitted from now on have higher ids than this. */
  skipClusters(upTo: number): Promise<void>;

  /**
   * Moves ended jobs into the history file, on disk before they leave the queue. Jobs that have not ended, or that say
   * `LeaveJobInQueue = true`, stay: it is the caller's to evaluate what is not a literal. Only for the Scheduler, one call at a time.
   */
  retire(ids: readonly JobId[]): Promise<number>;
  readonly history: History;
  /** Of the DAG whose manager is this cluster. */
  dag(manager: number): DagStream;
  readonly kv: Kv;
  work(name: string): Work;
  /** Loses all work items, as a lost BullMQ would. */
  forgetAllWork(): Promise<void>;

  /** Closes this process's connections. */
  close(): Promise<void>;
}

/** Connects, starting the private Redis where need be. */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { open } = await import('./open.ts');
  return open(options);
}

/** Ends the private Redis of a state directory and waits until it is gone; false where none ran, or (`unused`) somebody is connected. */
export async function stopRedis(
  options: Pick<QueueOptions, 'stateDir' | 'socketDir'> & { readonly unused?: boolean },
): Promise<boolean> {
  const { stopServer, stopUnusedServer } = await import('./redis-server.ts');
  return options.unused ? stopUnusedServer(options) : stopServer(options);
}

/** Whether the private Redis of a state directory answers; `absent`: nobody is at its socket. */
export async function serverState(
  options: Pick<QueueOptions, 'stateDir' | 'socketDir'>,
): Promise<'ready' | 'loading' | 'silent' | 'absent'> {
  const { serverState } = await import('./redis-server.ts');
  return serverState(options);
}

/** Installs the system's Redis package where none is on PATH, as root (Debian, Ubuntu); 'not-permitted' to others. */
export async function installRedis(options: Pick<QueueOptions, 'stateDir' | 'server' | 'onFetch'>): Promise<void> {
  const { installRedis } = await import('./redis-provide.ts');
  return installRedis(options);
}
