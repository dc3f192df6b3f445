import type { Attrs, AttrTexts } from '../job/attrs.ts';
import type { Candidates } from './candidate-types.ts';
import type { Json, QueueEvent } from '../job/events.ts';
import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { Holder, QueueMark } from '../job/mark.ts';
import type { History, LookWish, Sighting } from './history-types.ts';
import type { RestoredJob } from './restore.ts';
import type {
  Change,
  ChangeResult,
  ClusterRecord,
  ClusterSummary,
  EventEntry,
  JobHead,
  JobRecord,
  Lease,
  NoticeInput,
  ProcInput,
  Query,
  QueueOptions,
  SubmitInput,
  QueuedCluster,
  QueueTotals,
} from './types.ts';
import type { Work } from './work-types.ts';

export type * from './candidate-types.ts';
export type * from './history-types.ts';
export { endWithState } from './end-with-state.ts';
export { makeNoMore } from './make-no-more.ts';
export type { RestoredJob } from './restore.ts';
export type * from './types.ts';
export type * from './work-types.ts';

/**
 * A reader's position in the stream, stored in the queue under its name. The stream is trimmed behind the slowest
 * reader.
 */
export interface Cursor {
  readonly name: string;
  /**
   * The events after the saved position; waits up to `blockMs` for some (default 0: does not wait). `signal` ends the wait: it
   * rejects, or returns none.
   */
  read(options?: {
    readonly limit?: number;
    readonly blockMs?: number;
    readonly signal?: AbortSignal;
  }): Promise<readonly EventEntry[]>;
  /** All events up to and including this one have been handled. */
  save(id: string): Promise<void>;
  /** Deletes the cursor. */
  drop(): Promise<void>;
}

export interface SubscribeOptions {
  readonly from?: string;
  readonly signal?: AbortSignal;
  /**
   * Only events whose JSON text matches: most readers want few of them, and parsing all costs more than reading them.
   */
  readonly only?: RegExp;
}

/** What the queue keeps for the manager of one DAG, so that its cost depends on this DAG alone. */
export interface DagStream {
  /** Every submit of this DAG, including those whose jobs have left the queue. */
  submits(): Promise<readonly { readonly name: string; readonly cluster: number; readonly procs: number }[]>;
  /** Transitions of the DAG's jobs, and messages from `tell`, after `from` ('0': from the oldest kept). */
  read(
    from: string,
    options?: { readonly limit?: number; readonly blockMs?: number },
    signal?: AbortSignal,
  ): Promise<readonly DagEntry[]>;
  /** Sends a message to the manager, in order with the jobs' events. */
  tell(what: Json): Promise<void>;
  /** Deletes the events before this one. */
  trim(id: string): Promise<void>;
  /** Deletes everything kept for this DAG, which has ended. */
  drop(): Promise<void>;
}

export interface DagEntry {
  readonly id: string;
  readonly event: QueueEvent | { readonly type: 'told'; readonly what: Json };
}

export interface KvEntry {
  readonly key: string;
  readonly value: string;
  /** Increases with every write of the key; 0: the key does not exist. */
  readonly version: number;
}

/** Small durable values, by namespace, such as the sites' learned limits. */
export interface Kv {
  get(namespace: string, key: string): Promise<KvEntry | undefined>;
  list(namespace: string): Promise<readonly KvEntry[]>;
  /**
   * With `ifVersion`, returns `undefined` if the key has another version (0: absent). Otherwise returns the new
   * version.
   */
  set(namespace: string, key: string, value: string, ifVersion?: number): Promise<number | undefined>;
  delete(namespace: string, key: string): Promise<void>;
}

export type MaterializeResult =
  | { readonly ok: true; readonly nextProc: number }
  | { readonly ok: false; readonly why: 'no-such-cluster' | 'conflict' | 'stale-epoch'; readonly nextProc?: number };

/**
 * The durable queue. Every method rejects with a GryphusError: 'queue-unavailable' (retry later) if Redis is away
 * longer than `patienceMs`, 'disk-full' if it cannot write. Refusals that daemons expect are return values.
 */
export interface Queue {
  /** The agent's id, created once for a state directory: 10 characters of [A-Za-z0-9]. */
  readonly agent: string;
  /** Tells the sites which state directory serves the agent. */
  readonly holder: Holder;
  /**
   * Makes this queue the one that serves `agent`, from `epoch` on, for whoever opens it next. Returns false, and changes
   * nothing, if it has had clusters of another agent, or serves that epoch or a later one.
   */
  takeOver(agent: string, epoch: number): Promise<boolean>;
  /** Where its Redis listens, for messages. */
  readonly where: string;

  /** Resolves when the jobs are on disk. Readers see all of them or none. */
  submit(input: SubmitInput): Promise<QueuedCluster>;
  /**
   * Adds procs starting at `nextProc`. Refused with 'conflict' if another call was first. `done`: there will be no
   * more.
   */
  materialize(
    cluster: number,
    input: {
      readonly nextProc: number;
      readonly procs: Iterable<ProcInput>;
      readonly done: boolean;
      readonly lease?: Lease;
      /** The reason of the procs that are made `removed`. */
      readonly removedBecause?: string;
    },
  ): Promise<MaterializeResult>;
  /**
   * Removes procs that are not created yet: they will be created as removed, with 'conflict' for a `materialize` that
   * does not know of it. Returns those that are not to be created, or have been.
   */
  unwant(cluster: number, procs: readonly number[]): Promise<readonly number[]>;
  /** The procs from `from` on and below `to` that `unwant` has removed, and that are not created yet. */
  unwanted(cluster: number, from: number, to: number): Promise<ReadonlySet<number>>;
  /** Clusters that still have procs to create. */
  unmaterialized(): Promise<readonly ClusterRecord[]>;

  transition(change: Change, lease?: Lease): Promise<ChangeResult>;
  /** Makes each change independently, in order, a thousand in one exchange. */
  transitionMany(changes: readonly Change[], lease?: Lease): Promise<readonly ChangeResult[]>;
  /** For the Scheduler: assigns a (different) manager and site to idle and held jobs. */
  route(
    ids: readonly JobId[],
    to: { readonly manager: string; readonly site: string },
    lease?: Lease,
  ): Promise<readonly ChangeResult[]>;
  /**
   * Puts a job that left the queue back under its old id, held. Returns false if it is already in the queue. The
   * attributes are the whole ad, as the history has it.
   */
  restore(job: RestoredJob): Promise<boolean>;
  /** Changes the attributes that a cluster's jobs share. Returns false if there is no such cluster. */
  editCluster(cluster: number, set: AttrTexts): Promise<boolean>;

  /** In the order of `ids`; jobs that do not exist are omitted. */
  get(ids: readonly JobId[]): Promise<readonly JobRecord[]>;
  /** Streams in the order of ids, a thousand at a time. */
  query(query?: Query): AsyncIterable<JobRecord>;
  /** The same in chunks: awaiting each job separately costs more than reading it. */
  queryChunks(query?: Query): AsyncIterable<readonly JobRecord[]>;
  /** The jobs of a cluster in order, in large chunks, without reading them. Each is found once, even if it moves meanwhile. */
  heads(cluster: number): AsyncIterable<readonly JobHead[]>;
  /**
   * Finds each job that a wish selects exactly once, in the queue or, once it has left that, in the history. A job that
   * moves in the meantime is neither lost nor returned twice, so every answer about jobs that may have ended comes from
   * here.
   */
  look(wishes: readonly LookWish[], limit?: number): AsyncIterable<Sighting>;
  /** The next jobs of one manager and site in a state (default idle): JobPrio descending, then by cluster and proc. */
  nextJobs(place: {
    readonly manager: string;
    readonly site: string;
    readonly state?: State;
    readonly limit: number;
  }): Promise<readonly JobRecord[]>;
  readonly candidates: Candidates;
  totals(): Promise<QueueTotals>;
  clusters(): Promise<readonly ClusterRecord[]>;
  /**
   * Summaries of all clusters, or these, in order of their ids. The cost depends on the number of clusters, not of
   * jobs.
   */
  summaries(clusters?: readonly number[]): Promise<readonly ClusterSummary[]>;
  cluster(cluster: number): Promise<(ClusterRecord & { readonly attrs: Attrs }) | undefined>;

  /** The id of the newest event ('0' if there is none), to read the events that follow. */
  position(): Promise<string>;
  /** Events after `from` ('0': from the oldest kept, '$': only new ones). */
  readEvents(
    from: string,
    options?: { readonly limit?: number; readonly blockMs?: number },
  ): Promise<readonly EventEntry[]>;
  /** Ends when the signal is aborted. By default, starts with new events. */
  subscribe(options?: SubscribeOptions): AsyncIterable<EventEntry>;
  /** Opens a cursor; a new one starts at `startAt`, default '0'. */
  cursor(name: string, startAt?: '0' | '$'): Promise<Cursor>;
  notice(notice: NoticeInput): Promise<void>;
  /**
   * Deletes the events that every cursor has passed, except the newest `keep` (default 10,000), for readers without a
   * cursor.
   */
  trimEvents(keep?: number): Promise<void>;

  /** `undefined` while another process holds it. `force`: takes it from any holder. */
  acquireLease(
    name: string,
    ttlMs: number,
    options?: { readonly holder?: string; readonly force?: boolean },
  ): Promise<Lease | undefined>;
  /** False if another process has taken it; the caller must stop. */
  renewLease(lease: Lease, ttlMs: number): Promise<boolean>;
  releaseLease(lease: Lease): Promise<void>;
  /** For each name, what changes with every renewal; `undefined` if nobody holds the lease. */
  leaseMarks(names: readonly string[]): Promise<readonly (string | undefined)[]>;

  /** How far the queue has progressed. */
  mark(): Promise<QueueMark>;
  /**
   * Where this queue diverged from the one that made the mark: the last cluster id that both know; this queue is then
   * an older copy of that one. `undefined` if this queue was itself at the mark.
   */
  divergence(seen: QueueMark): Promise<number | undefined>;
  /** Clusters submitted from now on get ids higher than this. */
  skipClusters(upTo: number): Promise<void>;

  /**
   * Moves ended jobs into the history file; they are on disk there before they leave the queue. Jobs that have not
   * ended, or that have `LeaveJobInQueue = true`, stay; if that is not a literal, the caller must evaluate it. Only for
   * the Scheduler, one call at a time.
   */
  retire(ids: readonly JobId[]): Promise<number>;
  readonly history: History;
  /**
   * Saves the queue as it is at one moment in a file of its own, while others use it; returns its absolute path. Rejects with
   * 'conflict' for a Redis that is not ours.
   */
  snapshot(): Promise<string>;
  /**
   * Notes check sums of what the private Redis has written since the last time, by which a later start finds damage and puts single
   * bytes back; for the Scheduler. Returns what to say of bytes that were put back, once.
   */
  coverFiles(): Promise<readonly string[]>;
  /** For a queue that was put back from a snapshot: deletes what its history knows of later. */
  cutHistory(): Promise<void>;
  /** The stream of the DAG whose manager is this cluster. */
  dag(manager: number): DagStream;
  readonly kv: Kv;
  work(name: string): Work;
  /** Deletes all work items, as if BullMQ had lost them. */
  forgetAllWork(): Promise<void>;

  /** A Scheduler runs: the private Redis, which this process may have started, does not end with it any more. */
  handOver(): void;
  /** Closes this process's connections. */
  close(): Promise<void>;
}

/** Puts a queue's snapshot where a Redis that is started in `stateDir` reads it. */
export async function placeSnapshot(rdb: string, stateDir: string): Promise<void> {
  const { placeSnapshot: place } = await import('./snapshot.ts');
  place(rdb, stateDir);
}

/** Connects to the queue, and starts the private Redis if necessary. */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { open } = await import('./open.ts');
  return open(options);
}

/**
 * Stops the private Redis of a state directory and waits until it is gone. Returns false if none was running or, with
 * `unused`, if somebody is connected.
 */
export async function stopRedis(
  options: Pick<QueueOptions, 'stateDir' | 'socketDir'> & { readonly unused?: boolean },
): Promise<boolean> {
  const { stopServer, stopUnusedServer } = await import('./redis-server.ts');
  return options.unused ? stopUnusedServer(options) : stopServer(options);
}

/** Bytes of the private Redis' files that had changed by themselves and were put back, the latest last; `at`: Unix milliseconds. */
export async function queueRepairs(
  stateDir: string,
): Promise<readonly { readonly at: number; readonly message: string }[]> {
  const { repairsOf, repairText } = await import('./redis-repairs.ts');
  return repairsOf(stateDir).map((one) => ({ at: one.at, message: repairText(one) }));
}

/** The other machine that uses this state directory, or used it last and did not end in order. */
export async function hostElsewhere(stateDir: string): Promise<string | undefined> {
  const { hostElsewhere: host } = await import('./state-place.ts');
  return host(stateDir);
}

/** Whether the private Redis of a state directory answers; `absent`: nothing listens at its socket. */
export async function serverState(
  options: Pick<QueueOptions, 'stateDir' | 'socketDir'>,
): Promise<'ready' | 'loading' | 'silent' | 'absent'> {
  const { serverState } = await import('./redis-server.ts');
  return serverState(options);
}

/**
 * Installs the system's Redis package if there is none on PATH. Requires root and apt (Debian, Ubuntu); rejects with
 * 'not-permitted' for other users.
 */
export async function installRedis(options: Pick<QueueOptions, 'stateDir' | 'server' | 'onFetch'>): Promise<void> {
  const { installRedis } = await import('./redis-provide.ts');
  return installRedis(options);
}
