import type { CandidateEvent, CandidateNext } from './candidate-life.ts';
import type { LifeEvent, State } from './life.ts';

/** What JSON can say. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** `cluster.proc` as text. */
export type JobName = `${number}.${number}`;

interface Stamp {
  /** The version of this shape. A reader skips what it does not know. */
  readonly v: 1;
  /** Unix milliseconds by the clock of the process that made the change. */
  readonly at: number;
}

/** A cluster became visible; its procs, which may have gaps, are `[from, to)` ranges. */
export interface Submitted extends Stamp {
  readonly type: 'submitted';
  readonly cluster: number;
  readonly procs: readonly (readonly [from: number, to: number])[];
  readonly owner: string;
}

/** More procs of a cluster became jobs (late materialization). */
export interface Materialized extends Stamp {
  readonly type: 'materialized';
  readonly cluster: number;
  readonly procs: readonly (readonly [from: number, to: number])[];
  /** No more will come. */
  readonly done: boolean;
}

/** One step of a job's life (life.ts). */
export interface Transitioned extends Stamp {
  readonly type: 'transition';
  readonly job: JobName;
  readonly event: LifeEvent;
  readonly from: State;
  readonly to: State;
  /** The attempt that the job is in after it; 0 before the first. */
  readonly attempt: number;
  /** Attributes that changed with it, `null` where one went away. */
  readonly set: Readonly<Record<string, string | null>>;
  /** What the one who made the transition has to say beyond the attributes (the host, the usage, the site's words). */
  readonly info?: Readonly<Record<string, Json>>;
}

/** Attributes of a job changed, its state did not. */
export interface Edited extends Stamp {
  readonly type: 'edited';
  readonly job: JobName;
  readonly set: Readonly<Record<string, string | null>>;
  readonly info?: Readonly<Record<string, Json>>;
}

/** What the jobs of a cluster share changed. */
export interface ClusterEdited extends Stamp {
  readonly type: 'cluster-edited';
  readonly cluster: number;
  readonly set: Readonly<Record<string, string | null>>;
}

/** A job was given to a manager and a site ('' takes it back from them). */
export interface Routed extends Stamp {
  readonly type: 'routed';
  readonly job: JobName;
  readonly manager: string;
  readonly site: string;
}

/** One step of a candidate's life (candidate-life.ts). */
export interface CandidateStepped extends Stamp {
  readonly type: 'candidate';
  readonly job: JobName;
  readonly attempt: number;
  readonly manager: string;
  readonly site: string;
  readonly event: CandidateEvent;
  readonly to: CandidateNext;
  /** The site's words, where it said any. */
  readonly message?: string;
}

/** Jobs left the queue for the history. */
export interface Retired extends Stamp {
  readonly type: 'retired';
  readonly jobs: readonly JobName[];
}

/** Something that is not a job changed. */
export interface Notice extends Stamp {
  readonly type: 'notice';
  readonly about: NoticeKind;
  /** Of a site's notice. */
  readonly site?: string;
  /** Whose: the manager's identity (owner and credential). */
  readonly manager?: string;
  /** A job, where the notice is of one (its streams moved, its image grew). */
  readonly job?: JobName;
  /** One sentence for the user. */
  readonly message: string;
  readonly info?: Readonly<Record<string, Json>>;
}

export type NoticeKind =
  | 'site-up'
  | 'site-down'
  | 'site-needs-login'
  | 'site-limits'
  | 'credential-expiring'
  | 'credential-expired'
  | 'credential-renewed'
  | 'manager-started'
  | 'manager-ended'
  | 'manager-failed'
  | 'fault'
  | 'job-note';

/** Every change of the queue, as the queue's stream carries it. */
export type QueueEvent =
  | Submitted
  | Materialized
  | Transitioned
  | Edited
  | ClusterEdited
  | Routed
  | CandidateStepped
  | Retired
  | Notice;
