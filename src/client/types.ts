import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { Totals } from '../job/totals.ts';
import type { AdText } from '../enqueue/types.ts';
import type { Build } from '../util/daemon.ts';
import type { FetchProgress } from '../queue/api.ts';
import type { OwedLogs, UnsentMail } from '../queue/tables.ts';

export type { Totals } from '../job/totals.ts';
export type { Build } from '../util/daemon.ts';
export type { FetchProgress } from '../queue/api.ts';
export type { AdText, DryRun, ScriptRequest, Submitted, SubmitRequest, Warning } from '../enqueue/types.ts';

/**
 * Which jobs, in HTCondor's terms. Ids and clusters add up, everything else narrows; an empty selection means all jobs.
 */
export interface Selection {
  readonly ids?: readonly JobId[];
  /** Whole clusters. */
  readonly clusters?: readonly number[];
  readonly owner?: string;
  /** A ClassAd expression over the job's ad. */
  readonly constraint?: string;
  readonly all?: boolean;
}

/** Which agent `Gryphus.open()` opens, and what it may start for it. */
export interface OpenOptions {
  /** State and configuration in one directory, like $GRYPHUS_HOME; default: the environment's, or XDG's. */
  readonly home?: string;
  /** Start the Scheduler (and its Redis) if none runs; default true. */
  readonly start?: boolean;
  /** If there is no Redis, install the system's package as root (apt). Default: fetch one for this agent only. */
  readonly install?: boolean;
  /** Called with the progress of fetching or installing Redis. */
  readonly onFetch?: (progress: FetchProgress) => void;
}

export interface DownOptions extends OpenOptions {
  /** End this machine's worker too; its jobs are vacated, and run again later. */
  readonly vacate?: boolean;
}

/** One job, as a user asks for it. */
export interface JobView {
  readonly id: JobId;
  readonly state: State;
  readonly ad: AdText;
}

/** A job wherever it was found: in the queue, or in the history once it has left the queue. */
export interface SeenJobView extends JobView {
  readonly in: 'queue' | 'history';
}

/** Several selections together: a job that more than one of them matches counts once. */
export interface Selections extends Selection {
  readonly or?: readonly Selection[];
}

export interface QueryRequest extends Selections {
  /** Only these attributes (faster). */
  readonly attributes?: readonly string[];
  readonly limit?: number;
  /** Called with the number of jobs that were looked at since the last call, for showing progress. */
  readonly looked?: ((jobs: number) => void) | undefined;
}

/** Which jobs in the queue. */
export interface QueueRequest extends QueryRequest {
  /** Only those in one of these states, found without a look at the others. */
  readonly states?: readonly State[];
}

/** The jobs of one submit, counted. */
export interface ClusterView {
  readonly cluster: number;
  readonly owner: string;
  readonly batchName?: string;
  /** Unix seconds. */
  readonly submitted: number;
  /** How many procs were submitted. */
  readonly procs: number;
  /** The lowest and the highest proc in the queue. */
  readonly first?: number;
  readonly last?: number;
  /** The cluster of the DAG manager, if this is one of its nodes. */
  readonly dag?: number;
  /** Whether this is a DAG's manager, which totals do not count. */
  readonly manager: boolean;
  /** For a DAG's manager: how many nodes the DAG has, and how many are done. */
  readonly nodes?: { readonly total: number; readonly done: number };
  readonly totals: Totals;
  /** Of the procs that are not materialized yet, those that have been removed, if that was asked for. */
  readonly removedUnmade?: ReadonlySet<number>;
}

/** Which clusters, and what of them. */
export interface ClusterSelection extends Pick<Selection, 'clusters' | 'owner' | 'all'> {
  readonly removedUnmade?: boolean;
}

/** What can be done to jobs, with HTCondor's meaning. */
export type Action = 'hold' | 'release' | 'remove';

export interface ActionRequest extends Selection {
  /** Shown as HoldReason, ReleaseReason or RemoveReason. */
  readonly reason?: string;
  /** For hold: HoldReasonSubCode; default 0. */
  readonly subcode?: number;
  /** For remove: the job leaves the queue at once, whatever its site still does; `audit` finds what remains there. */
  readonly force?: boolean;
  /** As `QueryRequest.looked`. */
  readonly looked?: ((jobs: number) => void) | undefined;
}

/** The result for each job that an action named. */
export interface ActionResult {
  readonly id: JobId;
  readonly result: 'done' | 'not-found' | 'already' | 'bad-state';
  /** One phrase for users, such as `already held`. */
  readonly message: string;
}

export interface WaitRequest extends Selections {
  readonly timeoutMs?: number;
  /**
   * `end`: completed or removed (default), and in the place where the next query finds it: in the history, or in the
   * queue if it stays there (`leave_in_queue`). `settled`: ended like this, or held. `start`: running or later.
   */
  readonly until?: 'end' | 'start' | 'settled';
  readonly signal?: AbortSignal;
}

/** Which stream of which job is read. The bytes are those that the program wrote, in order, each once. */
export interface TailRequest {
  readonly id: JobId;
  readonly stream?: 'stdout' | 'stderr';
  /** Continue until the job ends. */
  readonly follow?: boolean;
  /** Start this many bytes before the current end; default: at the beginning. */
  readonly lastBytes?: number;
  readonly signal?: AbortSignal;
}

/** One answer to "why is it not running?". */
export interface Why {
  readonly id: JobId;
  readonly state: State;
  /** One sentence. */
  readonly summary: string;
  /**
   * The evidence, most important first: our hold, the site's reason, the connection, the credential, the jobs ahead of
   * it.
   */
  readonly details: readonly string[];
  /** Commands to type. */
  readonly suggestions: readonly string[];
}

/** A configured site: its connection, and how many of our jobs are where. */
export interface SiteStatus {
  readonly name: string;
  readonly url: string;
  readonly batch: string;
  readonly connection: 'unused' | 'up' | 'down' | 'needs-login' | 'refused';
  /** The number of our jobs that it accepts, learned from a refusal in these words at this time (Unix milliseconds). */
  readonly learned?: { readonly jobs: number; readonly message: string; readonly at: number };
  /** What it did last, if it failed jobs repeatedly and is now tried only from time to time. */
  readonly outOfUse?: string;
  /** When a job may next go there as a test; Unix milliseconds. */
  readonly nextTry?: number;
  /** Why it is not up, or something else worth knowing. */
  readonly message?: string;
  readonly since?: number;
  readonly idle: number;
  readonly queuedThere: number;
  readonly running: number;
  readonly unknown: number;
  /** Jobs whose input is on its way there, and whose output is on its way home. */
  readonly sending: number;
  readonly fetching: number;
}

export type { CheckStep } from '../site-check/steps.ts';

/** Something that a site holds and the queue does not know: an attempt of this agent, or another agent's jobs. */
export type AuditEntry = AuditedAttempt | OtherAgents;

/** What other agents have at the site: agents of another machine, or of a queue that was lost. */
export interface OtherAgents {
  readonly where: 'other-agent';
  readonly agent: string;
  readonly jobs: number;
  /** How many of these jobs have ended, and how many appear in the site's queue. */
  readonly ended: number;
  readonly queued: number;
  /** When the first and the last of them arrived, in Unix seconds; absent if only the queue shows them. */
  readonly oldest?: number;
  readonly newest?: number;
}

/**
 * An attempt of this agent at a site without a job in the queue (`site-only`), or known to the site's batch system
 * only (`queue-only`).
 */
export interface AuditedAttempt {
  readonly key: string;
  readonly where: 'site-only' | 'queue-only';
  readonly message: string;
  readonly can: readonly ('adopt' | 'clean')[];
  /** Why it cannot be adopted. */
  readonly unadoptable?: string;
}

/** The daemons of an agent, as seen without starting any. */
export interface DaemonStatus {
  readonly running: boolean;
  readonly pid?: number;
  readonly since?: number;
  /** The Scheduler's build, and ours if it differs. */
  readonly build?: Build;
  readonly ownBuild?: Build;
  /** The other machine that uses the state directory, or did when it died: nothing of it runs here. */
  readonly host?: string;
  readonly home: string;
  /** `silent`: its process runs but does not answer. */
  readonly redis: 'up' | 'down' | 'silent' | 'external';
  readonly managers: readonly { readonly identity: string; readonly pid: number; readonly since: number }[];
  readonly totals?: Totals;
  /** User logs that cannot be written now: how many, and the first one. `since`: Unix milliseconds. */
  readonly userLogs?: OwedLogs;
  /** Why mail could not be sent in the last 7 days, if none was sent since. */
  readonly unsentMail?: UnsentMail;
  /** Bytes of the queue's file that had changed by themselves and were put back in the last 30 days; `at`: Unix milliseconds. */
  readonly repairs?: { readonly count: number; readonly at: number; readonly message: string };
  /** Why the pool's central manager does not run, if it ended with an error. */
  readonly poolTrouble?: string;
}

/** What remains at a forgotten site; without these, nothing. */
export interface LeftSite {
  /** `~/…` there, or an absolute path. */
  readonly directory?: string;
  /** A shell command that removes it. */
  readonly command?: string;
}

/**
 * Asks the user for a passphrase or a one-time code. `echo` is false for secrets. Undefined: no answer will come. The signal
 * ends a question that nobody needs answered any more: the server has closed the connection.
 */
export type AskUser = (
  question: { readonly text: string; readonly echo: boolean },
  signal?: AbortSignal,
) => Promise<string | undefined>;
