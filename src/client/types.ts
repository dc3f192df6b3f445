import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { Totals } from '../job/totals.ts';
import type { AdText } from '../enqueue/types.ts';

export type { Totals } from '../job/totals.ts';
export type { AdText, DryRun, Submitted, SubmitRequest, Warning } from '../enqueue/types.ts';

/** Which jobs: HTCondor's ways to say it. All given conditions must hold; none given means all jobs of the user. */
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
}

/** One job as a person asks for it. */
export interface JobView {
  readonly id: JobId;
  readonly state: State;
  readonly ad: AdText;
}

export interface QueryRequest extends Selection {
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
  readonly words: string;
}

export interface WaitRequest extends Selection {
  readonly timeoutMs?: number;
  /** `end`: completed or removed (default); `start`: running or later; `settled`: ended or held. */
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
  readonly learned?: { readonly jobs: number; readonly words: string; readonly at: number };
  /** It failed jobs again and again, and is only tried now and then: what it did last. */
  readonly outOfUse?: string;
  /** From when on a job may go there to see; Unix milliseconds. */
  readonly nextTry?: number;
  /** Why it is not up, or what is worth knowing. */
  readonly words?: string;
  readonly since?: number;
  readonly idle: number;
  readonly queuedThere: number;
  readonly running: number;
  readonly unknown: number;
}

export interface CheckStep {
  readonly step: string;
  readonly ok: boolean;
  readonly words: string;
  /** What to do about it. */
  readonly mend?: string;
}

export interface AuditEntry {
  readonly key: string;
  readonly where: 'site-only' | 'queue-only';
  readonly words: string;
  readonly can: readonly ('adopt' | 'clean')[];
  /** Why it cannot be adopted. */
  readonly unadoptable?: string;
}

export interface DaemonStatus {
  readonly running: boolean;
  readonly pid?: number;
  readonly since?: number;
  readonly home: string;
  /** `silent`: its process runs and does not answer. */
  readonly redis: 'up' | 'down' | 'silent' | 'external';
  readonly managers: readonly { readonly identity: string; readonly pid: number; readonly since: number }[];
  readonly totals?: Totals;
}

/** Asks a person: a passphrase, a one-time code. `echo` false for secrets. Undefined: no answer will come. */
export type AskUser = (question: { readonly text: string; readonly echo: boolean }) => Promise<string | undefined>;
