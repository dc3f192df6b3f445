import type { Attrs, AttrTexts } from '../job/attrs.ts';
import type { Json, JobName, NoticeKind, QueueEvent } from '../job/events.ts';
import type { JobId } from '../job/ids.ts';
import type { LifeEvent, State } from '../job/life.ts';

/** How the queue's Redis is reached. */
export interface QueueOptions {
  /** Absolute; Redis' files go to `<stateDir>/redis`, the history to `<stateDir>/history`. */
  readonly stateDir: string;
  /** A 0700 directory for the socket; without it, or where the path would be too long, the queue finds one. */
  readonly socketDir?: string;
  /** A Redis that somebody else runs (`redis://`, `rediss://`, `unix://`); `$REDIS_URL` goes before it. Then nothing is started. */
  readonly url?: string | undefined;
  /** The redis-server program; `$GRYPHUS_REDIS_SERVER` goes before it; default: PATH, then what was fetched. */
  readonly server?: string | undefined;
  /** Told how far it is where there is no redis-server and one is fetched, by the system's apt, into `stateDir`. */
  readonly onFetch?: ((progress: FetchProgress) => void) | undefined;
  /**
   * `never`: fail with 'queue-unavailable' at once when no private Redis runs. `await`: only after the patience, since
   * somebody else starts it. `if-needed` (default): start it. `keep`: start it also when it dies later (the Scheduler).
   */
  readonly start?: 'never' | 'await' | 'if-needed' | 'keep';
  /** Unix milliseconds; default Date.now. */
  readonly clock?: () => number;
  /** How long a call waits for a Redis that is away before 'queue-unavailable', in milliseconds; default 2000. */
  readonly patienceMs?: number;
}

/** How far the fetching of a Redis server is. */
export interface FetchProgress {
  /** `waiting`: another process fetches it. */
  readonly step: 'waiting' | 'fetching' | 'installing' | 'done' | 'failed';
  readonly percent: number;
}

/** A job as the queue keeps it. */
export interface JobRecord {
  readonly id: JobId;
  readonly state: State;
  /** Owner and credential identity, as the submit or a route gave it; '' where none is given yet. */
  readonly manager: string;
  /** '' until it is routed. */
  readonly site: string;
  /** Counts from 1 with each `take`; 0 before the first. */
  readonly attempt: number;
  readonly priority: number;
  /** Unix seconds since when it has its JobStatus. */
  readonly since: number;
  /**
   * Cluster's and job's attributes merged. ClusterId, ProcId, JobStatus, EnteredCurrentStatus, GryphusState,
   * GryphusSite and GryphusAttempt are made from the fields above: they cannot be set.
   */
  readonly attrs: Attrs;
}

export interface ClusterRecord {
  readonly cluster: number;
  readonly owner: string;
  /** JobBatchName, '' without. */
  readonly batchName: string;
  /** Unix seconds. */
  readonly submitted: number;
  readonly counts: Readonly<Partial<Record<State, number>>>;
  /** The proc that materialization makes next; procs below it exist or existed. */
  readonly nextProc: number;
  /** Of late materialization: what makes the rest of the procs; absent when all are there. */
  readonly digest?: string;
  /** How many procs there will be in all, as far as the submit said it. */
  readonly total: number;
}

/** A cluster at a glance, from the counters that every transition moves. */
export interface ClusterSummary {
  readonly cluster: number;
  readonly owner: string;
  /** JobBatchName, '' without. */
  readonly batchName: string;
  /** Unix seconds. */
  readonly submitted: number;
  readonly counts: Readonly<Partial<Record<State, number>>>;
  readonly nextProc: number;
  /** How many procs there will be in all, as far as the submit said it. */
  readonly total: number;
  /** JobUniverse; `undefined` where the submit said none. */
  readonly universe?: number;
  /** DAGManJobId: the cluster of the DAG manager that it belongs to. */
  readonly dag?: number;
  /** The least and the greatest proc in the queue; absent where none is there. */
  readonly procs?: { readonly first: number; readonly last: number };
}

export interface ProcInput {
  /** Only what differs from the cluster; what is equal is dropped. */
  readonly attrs: AttrTexts;
  /** Default: counting on from 0. Must grow. */
  readonly proc?: number;
  /** `held` needs HoldReason in the attributes to be of use. Default: `held` where JobStatus says 5 in job or cluster, else `idle`. */
  readonly state?: 'idle' | 'held';
  readonly manager?: string;
  readonly site?: string;
}

export interface SubmitInput {
  /** What the procs share. Owner and JobBatchName are read from it. */
  readonly clusterAd: AttrTexts;
  readonly procs: Iterable<ProcInput> | AsyncIterable<ProcInput>;
  /** Of procs that say nothing else, also of those that materialization makes later. */
  readonly manager?: string;
  readonly site?: string;
  /** Late materialization: the text that makes the rest; `total` then says how many procs there will be. */
  readonly digest?: string;
  readonly total?: number;
  /** Of a node of a DAG: its manager's cluster, and a name, of which the queue takes one submit in this DAG ('conflict'). */
  readonly dag?: { readonly manager: number; readonly name: string };
  /** Called once, before the first proc is read, with the id that the cluster gets: for `$(Cluster)`. */
  readonly onCluster?: (cluster: number) => void;
}

export interface Submitted {
  readonly cluster: number;
  readonly procs: number;
}

/** A lease that somebody holds; hand it to each transition. */
export interface Lease {
  readonly name: string;
  /** Grows with every holder, for ever. */
  readonly epoch: number;
}

export interface Change {
  readonly id: JobId;
  /** Absent: the state stays, the attributes change ('edited'). */
  readonly event?: LifeEvent;
  /** Refused with 'wrong-state' unless the job is in (one of) these. */
  readonly from?: State | readonly State[];
  /** Attribute to expression text; `null` takes it away. */
  readonly set?: AttrTexts;
  /** Give the job elsewhere with it; it must then be where nothing is done (idle, held), but for 'adopted'. */
  readonly route?: { readonly manager: string; readonly site: string };
  /** Only if the job is still cared for there: else refused with 'wrong-state'. */
  readonly at?: { readonly manager: string; readonly site: string };
  /** Goes into the event, not into the job. */
  readonly info?: Readonly<Record<string, Json>>;
  /** Only if the job is still in this attempt. */
  readonly attempt?: number;
  /** Of 'granted', and of it alone: this attempt of the job's candidates becomes its attempt, at that candidate's site; the others are withdrawn. */
  readonly candidate?: number;
  /** Of 'adopted', and of it alone: the attempt that becomes the job's, at the site of `route`; refused where the job is in a later one. */
  readonly adopt?: number;
  /** The job's next attempts have higher numbers than this. */
  readonly attemptsFrom?: number;
}

export type ChangeResult =
  | { readonly ok: true; readonly state: State; readonly attempt: number }
  | {
      readonly ok: false;
      readonly why: 'no-such-job' | 'wrong-state' | 'wrong-attempt' | 'stale-epoch';
      /** Where it is, if it is. */
      readonly state?: State;
      /** One sentence. */
      readonly message: string;
    };

export interface Query {
  /** Ids and clusters are alternatives; all else narrows. */
  readonly ids?: readonly JobId[];
  readonly clusters?: readonly number[];
  readonly owner?: string;
  readonly states?: readonly State[];
  readonly manager?: string;
  readonly site?: string;
  /** Over the merged attributes, as `constraint()` makes it from a ClassAd expression. */
  readonly where?: (job: JobRecord) => boolean;
  readonly limit?: number;
}

export interface Totals {
  readonly jobs: number;
  readonly states: Readonly<Record<State, number>>;
  /** Where there are jobs, each with its count. */
  readonly places: readonly Place[];
}

export interface Place {
  readonly manager: string;
  readonly site: string;
  readonly state: State;
  readonly jobs: number;
}

export interface EventEntry {
  /** Position in the stream; grows. */
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
