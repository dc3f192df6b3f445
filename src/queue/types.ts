import type { Attrs, AttrTexts } from '../job/attrs.ts';
import type { Json, JobName, NoticeKind, QueueEvent } from '../job/events.ts';
import type { JobId } from '../job/ids.ts';
import type { LifeEvent, State } from '../job/life.ts';

/** How to reach the queue's Redis. */
export interface QueueOptions {
  /** Absolute. Redis's files are in `<stateDir>/redis`, the history in `<stateDir>/history`. */
  readonly stateDir: string;
  /** A 0700 directory for the socket. If absent, or if the path would be too long, the queue chooses one. */
  readonly socketDir?: string;
  /**
   * An external Redis (`redis://`, `rediss://`, `unix://`); `$REDIS_URL` takes precedence. No server is then started.
   */
  readonly url?: string | undefined;
  /** The redis-server program; `$GRYPHUS_REDIS_SERVER` takes precedence. Default: PATH, then a fetched one. */
  readonly server?: string | undefined;
  /** Called with the progress if there is no redis-server and one is fetched into `stateDir`, by the system's apt. */
  readonly onFetch?: ((progress: FetchProgress) => void) | undefined;
  /**
   * `never`: reject with 'queue-unavailable' at once if no private Redis runs. `await`: the same, but only after
   * `patienceMs`, because another process starts it. `if-needed` (default): start it. `keep`: also restart it if it
   * dies later (the Scheduler).
   */
  readonly start?: 'never' | 'await' | 'if-needed' | 'keep';
  /** Unix milliseconds; default Date.now. */
  readonly clock?: () => number;
  /**
   * How long a call waits for a Redis that is away before it rejects with 'queue-unavailable', milliseconds; default
   * 2000.
   */
  readonly patienceMs?: number;
  /**
   * For a daemon that is told to end: once it is aborted, a Redis that is away is neither started nor waited for, as it may have been
   * told the same; and one that was started only just before ends with this process.
   */
  readonly leaving?: AbortSignal;
}

/** Progress of fetching a Redis server. */
export interface FetchProgress {
  /** `waiting`: another process is fetching it. */
  readonly step: 'waiting' | 'fetching' | 'installing' | 'done' | 'failed';
  readonly percent: number;
}

/** Which job it is, and its state. */
export interface JobHead {
  readonly id: JobId;
  readonly state: State;
}

/** A job in the queue. */
export interface JobRecord extends JobHead {
  /** Owner and credential identity, from the submit or a route; '' if none is assigned yet. */
  readonly manager: string;
  /** '' until it is routed. */
  readonly site: string;
  /** Incremented by each `take`; 0 before the first. */
  readonly attempt: number;
  readonly priority: number;
  /** When its JobStatus last changed, Unix seconds. */
  readonly since: number;
  /**
   * The attributes of cluster and job, merged. ClusterId, ProcId, JobStatus, EnteredCurrentStatus, GryphusState,
   * GryphusSite and GryphusAttempt are derived from the fields above and cannot be set.
   */
  readonly attrs: Attrs;
}

export interface ClusterRecord {
  readonly cluster: number;
  readonly owner: string;
  /** JobBatchName, or ''. */
  readonly batchName: string;
  /** Unix seconds. */
  readonly submitted: number;
  readonly counts: Readonly<Partial<Record<State, number>>>;
  /** The next proc that materialization creates; all lower ones exist or existed. */
  readonly nextProc: number;
  /** For late materialization: the description of the remaining procs; absent if all have been created. */
  readonly digest?: string;
  /** Total number of procs in the end, as far as known from the submit. */
  readonly total: number;
}

/** Summary of a cluster, from the counters that every transition updates. */
export interface ClusterSummary {
  readonly cluster: number;
  readonly owner: string;
  /** JobBatchName, or ''. */
  readonly batchName: string;
  /** Unix seconds. */
  readonly submitted: number;
  readonly counts: Readonly<Partial<Record<State, number>>>;
  readonly nextProc: number;
  /** Total number of procs in the end, as far as known from the submit. */
  readonly total: number;
  /** JobUniverse; `undefined` if the submit did not set it. */
  readonly universe?: number;
  /** DAGManJobId: the cluster of its DAG manager. */
  readonly dag?: number;
  /** The lowest and the highest proc in the queue; absent if there is none. */
  readonly procs?: { readonly first: number; readonly last: number };
}

export interface ProcInput {
  /** Only attributes that differ from the cluster's; equal ones are dropped. */
  readonly attrs: AttrTexts;
  /** Must increase. Default: the next number, starting at 0. */
  readonly proc?: number;
  /**
   * `held` should come with HoldReason in the attributes. Default: `held` if JobStatus is 5 in the job or cluster,
   * otherwise `idle`. `removed`: only of late materialization, for the procs that `unwant` marked.
   */
  readonly state?: 'idle' | 'held' | 'removed';
  readonly manager?: string;
  readonly site?: string;
}

export interface SubmitInput {
  /** Attributes that the procs share, including Owner and JobBatchName. */
  readonly clusterAd: AttrTexts;
  readonly procs: Iterable<ProcInput> | AsyncIterable<ProcInput>;
  /** Default for procs without their own, including those materialized later. */
  readonly manager?: string;
  readonly site?: string;
  /** Late materialization: the description of the remaining procs; `total` is then the total number. */
  readonly digest?: string;
  readonly total?: number;
  /**
   * For a node of a DAG: the cluster of the DAG's manager, and a name, which can be submitted only once in this DAG
   * ('conflict').
   */
  readonly dag?: { readonly manager: number; readonly name: string };
  /** Called once, before the first proc is read, with the new cluster's id: for `$(Cluster)`. */
  readonly onCluster?: (cluster: number) => void;
}

export interface QueuedCluster {
  readonly cluster: number;
  readonly procs: number;
}

/** A lease that the caller holds; passed to each transition. */
export interface Lease {
  readonly name: string;
  /** Higher for every new holder, forever. */
  readonly epoch: number;
}

export interface Change {
  readonly id: JobId;
  /** Absent: the state stays the same, and attributes change ('edited'). */
  readonly event?: LifeEvent;
  /** Refused with 'wrong-state' unless the job is in (one of) these. */
  readonly from?: State | readonly State[];
  /** Maps attributes to expression texts; `null` removes one. */
  readonly set?: AttrTexts;
  /**
   * Also moves the job to this manager and site. It must then be in a state without work (idle, held), except for
   * 'adopted'.
   */
  readonly route?: { readonly manager: string; readonly site: string };
  /** Refused with 'wrong-state' unless the job is still at this manager and site. */
  readonly at?: { readonly manager: string; readonly site: string };
  /** Included in the event, not in the job. */
  readonly info?: Readonly<Record<string, Json>>;
  /** Refused unless the job is still in this attempt. */
  readonly attempt?: number;
  /**
   * Only and always for 'granted': this candidate's attempt becomes the job's attempt, at the candidate's site; the
   * other candidates are withdrawn.
   */
  readonly candidate?: number;
  /**
   * Only and always for 'adopted': the attempt that becomes the job's, at the site of `route`. Refused if the job is in
   * a later attempt.
   */
  readonly adopt?: number;
  /** The job's next attempts get numbers higher than this. */
  readonly attemptsFrom?: number;
}

export type ChangeResult =
  | { readonly ok: true; readonly state: State; readonly attempt: number }
  | {
      readonly ok: false;
      readonly why: 'no-such-job' | 'wrong-state' | 'wrong-attempt' | 'stale-epoch';
      /** The job's state, if it exists. */
      readonly state?: State;
      /** One sentence. */
      readonly message: string;
    };

export interface Query {
  /** Ids and clusters are alternatives; all other conditions narrow the result. */
  readonly ids?: readonly JobId[];
  readonly clusters?: readonly number[];
  readonly owner?: string;
  readonly states?: readonly State[];
  readonly manager?: string;
  readonly site?: string;
  /** Applied to the merged attributes; `constraint()` makes it from a ClassAd expression. */
  readonly where?: (job: JobRecord) => boolean;
  readonly limit?: number;
  /** Called with the number of jobs that were read since the last call. */
  readonly looked?: (jobs: number) => void;
}

export interface QueueTotals {
  readonly jobs: number;
  readonly states: Readonly<Record<State, number>>;
  /** Places with jobs, each with its count. */
  readonly places: readonly Place[];
}

export interface Place {
  readonly manager: string;
  readonly site: string;
  readonly state: State;
  readonly jobs: number;
}

export interface EventEntry {
  /** Position in the stream; increases. */
  readonly id: string;
  readonly event: QueueEvent;
}

export interface NoticeInput {
  readonly about: NoticeKind;
  readonly site?: string;
  readonly manager?: string;
  readonly job?: JobName;
  readonly message: string;
  readonly info?: Readonly<Record<string, Json>>;
}
