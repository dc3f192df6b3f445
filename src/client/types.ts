import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { Totals } from '../job/totals.ts';
import type { AdText } from '../enqueue/types.ts';
import type { Build } from '../config/build.ts';
import type { FetchProgress } from '../queue/api.ts';
import type { OwedLogs } from '../scheduler/user-logs/report.ts';

export type { Totals } from '../job/totals.ts';
export type { Build } from '../config/build.ts';
export type { FetchProgress } from '../queue/api.ts';
export type { AdText, DryRun, Submitted, SubmitRequest, Warning } from '../enqueue/types.ts';

/** Which jobs: HTCondor's ways to say it. Ids and clusters are alternatives, all else narrows; nothing given means all jobs. */
export interface Selection {
  readonly ids?: readonly JobId[];
  /** Whole clusters. */
  readonly clusters?: readonly number[];
  readonly owner?: string;
  /** A ClassAd expression over the job's ad. */
  readonly constraint?: string;
  readonly all?: boolean;
}

export interface OpenOptions {
  /** State and configuration in one directory, as $GRYPHUS_HOME; default: the environment's, else XDG's. */
  readonly home?: string;
  /** Start the Scheduler (and its Redis) when none runs; default true. */
  readonly start?: boolean;
  /** Where there is no Redis: install the system's package, as root (apt). Default: fetch one for this agent alone. */
  readonly install?: boolean;
  /** Told how far the fetching or installing of Redis is. */
  readonly onFetch?: (progress: FetchProgress) => void;
}

/** One job as a person asks for it. */
export interface JobView {
  readonly id: JobId;
  readonly state: State;
  readonly ad: AdText;
}

/** A job wherever it was seen: in the queue, or, once it has left that, in the history. */
export interface SeenJobView extends JobView {
  readonly in: 'queue' | 'history';
}

/** Which jobs, also by several selections: a job that more than one of them names is one job. */
export interface Selections extends Selection {
  readonly or?: readonly Selection[];
}

export interface QueryRequest extends Selections {
  /** Only these attributes (faster). */
  readonly attributes?: readonly string[];
  readonly limit?: number;
}

/** The jobs of one submit, counted. */
export interface ClusterView {
  readonly cluster: number;
  readonly owner: string;
  readonly batchName?: string;
  /** Unix seconds. */
  readonly submitted: number;
  /** How many it was submitted with. */
  readonly procs: number;
  /** The least and the greatest proc that is in the queue. */
  readonly first?: number;
  readonly last?: number;
  /** The cluster of the DAG manager whose node it is. */
  readonly dag?: number;
  /** It is itself a DAG's manager; totals do not count it. */
  readonly manager: boolean;
  /** Of a DAG's manager: how many nodes the DAG has, and how many are done. */
  readonly nodes?: { readonly total: number; readonly done: number };
  readonly totals: Totals;
}

export type Action = 'hold' | 'release' | 'remove';

export interface ActionRequest extends Selection {
  /** Shown as HoldReason, ReleaseReason or RemoveReason. */
  readonly reason?: string;
  /** Of remove: the job leaves the queue at once, whatever its site still does; `audit` finds what is left there. */
  readonly force?: boolean;
}

/** What became of each job that an action named. */
export interface ActionResult {
  readonly id: JobId;
  readonly result: 'done' | 'not-found' | 'already' | 'bad-state';
  /** One phrase for a person: `already held`, say. */
  readonly message: string;
}

export interface WaitRequest extends Selections {
  readonly timeoutMs?: number;
  /**
   * `end`: completed or removed (default), and where the next question finds the job: in the history, or in the queue if it stays
   * there (`leave_in_queue`). `settled`: ended so, or held. `start`: running or later.
   */
  readonly until?: 'end' | 'start' | 'settled';
  readonly signal?: AbortSignal;
}

export interface TailRequest {
  readonly id: JobId;
  readonly stream?: 'stdout' | 'stderr';
  /** Keep on until the job ends. */
  readonly follow?: boolean;
  /** Start so many bytes before the present end; default everything. */
  readonly lastBytes?: number;
  readonly signal?: AbortSignal;
}

/** One answer to "why is it not running?". */
export interface Why {
  readonly id: JobId;
  readonly state: State;
  /** One sentence first. */
  readonly summary: string;
  /** The evidence, most important first: our hold, the site's reason, the connection, the credential, the queue before it. */
  readonly details: readonly string[];
  /** What to type. */
  readonly suggestions: readonly string[];
}

export interface SiteStatus {
  readonly name: string;
  readonly url: string;
  readonly batch: string;
  readonly connection: 'unused' | 'up' | 'down' | 'needs-login' | 'refused';
  /** How many jobs of ours it takes, as its refusal taught at that time (Unix milliseconds), in its own words. */
  readonly learned?: { readonly jobs: number; readonly message: string; readonly at: number };
  /** It failed jobs again and again, and is only tried now and then: what it did last. */
  readonly outOfUse?: string;
  /** From when on a job may go there to see; Unix milliseconds. */
  readonly nextTry?: number;
  /** Why it is not up, or what is worth knowing. */
  readonly message?: string;
  readonly since?: number;
  readonly idle: number;
  readonly queuedThere: number;
  readonly running: number;
  readonly unknown: number;
}

export interface CheckStep {
  readonly step: string;
  readonly ok: boolean;
  readonly message: string;
  /** What to do about it. */
  readonly remedy?: string;
}

export type AuditEntry = AuditedAttempt | OtherAgents;

/** What agents that this queue is not have at the site: those of another machine, or of a queue that was lost. */
export interface OtherAgents {
  readonly where: 'other-agent';
  readonly agent: string;
  readonly jobs: number;
  /** Those of them whose programs have ended, and those that the site's queue shows. */
  readonly ended: number;
  readonly queued: number;
  /** When the first and the last of them came there, Unix seconds; absent where nothing but the queue shows them. */
  readonly oldest?: number;
  readonly newest?: number;
}

export interface AuditedAttempt {
  readonly key: string;
  readonly where: 'site-only' | 'queue-only';
  readonly message: string;
  readonly can: readonly ('adopt' | 'clean')[];
  /** Why it cannot be adopted. */
  readonly unadoptable?: string;
}

export interface DaemonStatus {
  readonly running: boolean;
  readonly pid?: number;
  readonly since?: number;
  /** What the Scheduler runs, and what asks for this where that is another build. */
  readonly build?: Build;
  readonly ownBuild?: Build;
  readonly home: string;
  /** `silent`: its process runs and does not answer. */
  readonly redis: 'up' | 'down' | 'silent' | 'external';
  readonly managers: readonly { readonly identity: string; readonly pid: number; readonly since: number }[];
  readonly totals?: Totals;
  /** User logs that cannot be written now: how many, and the first of them. `since`: Unix milliseconds. */
  readonly userLogs?: OwedLogs;
}

/** What stays at a site that was forgotten; nothing: without these. */
export interface LeftSite {
  /** `~/…` there, or absolute. */
  readonly directory?: string;
  /** A line for the shell that removes it. */
  readonly command?: string;
}

/** Asks a person: a passphrase, a one-time code. `echo` false for secrets. Undefined: no answer will come. */
export type AskUser = (question: { readonly text: string; readonly echo: boolean }) => Promise<string | undefined>;
