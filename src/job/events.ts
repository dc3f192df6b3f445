import type { CandidateEvent, CandidateNext } from './candidate-life.ts';
import type { LifeEvent, State } from './life.ts';

/** What JSON can represent. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** `cluster.proc` as text. */
export type JobName = `${number}.${number}`;

interface Stamp {
  /** The version of this format. A reader skips what it does not know. */
  readonly v: 1;
  /** Unix milliseconds on the clock of the process that made the change. */
  readonly at: number;
}

/** A cluster became visible; its procs are `[from, to)` ranges, possibly with gaps. */
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
  /** No more will follow. */
  readonly done: boolean;
}

/** One step in a job's life (life.ts). */
export interface Transitioned extends Stamp {
  readonly type: 'transition';
  readonly job: JobName;
  readonly event: LifeEvent;
  readonly from: State;
  readonly to: State;
  /** The job's attempt after this step; 0 before the first. */
  readonly attempt: number;
  /** Attributes that changed with it; `null` for a removed one. */
  readonly set: Readonly<Record<string, string | null>>;
  /** What the author of the transition reports beyond the attributes (the host, the usage, the site's message). */
  readonly info?: Readonly<Record<string, Json>>;
}

/** Attributes of a job changed, but not its state. */
export interface Edited extends Stamp {
  readonly type: 'edited';
  readonly job: JobName;
  readonly set: Readonly<Record<string, string | null>>;
  readonly info?: Readonly<Record<string, Json>>;
}

/** The shared attributes of a cluster's jobs changed. */
export interface ClusterEdited extends Stamp {
  readonly type: 'cluster-edited';
  readonly cluster: number;
  readonly set: Readonly<Record<string, string | null>>;
}

/** A job was assigned to a manager and a site; '' takes it back. */
export interface Routed extends Stamp {
  readonly type: 'routed';
  readonly job: JobName;
  readonly manager: string;
  readonly site: string;
}

/** One step in a candidate's life (candidate-life.ts). */
export interface CandidateStepped extends Stamp {
  readonly type: 'candidate';
  readonly job: JobName;
  readonly attempt: number;
  readonly manager: string;
  readonly site: string;
  readonly event: CandidateEvent;
  readonly to: CandidateNext;
  /** The site's message, if any. */
  readonly message?: string;
}

/** Jobs moved from the queue to the history. */
export interface Retired extends Stamp {
  readonly type: 'retired';
  readonly jobs: readonly JobName[];
}

/** A change that is not a job's. */
export interface Notice extends Stamp {
  readonly type: 'notice';
  readonly about: NoticeKind;
  /** For a site's notice. */
  readonly site?: string;
  /** The identity (owner and credential) of the manager concerned. */
  readonly manager?: string;
  /** The job concerned, if any (its streams moved, its image grew). */
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

/** Any change of the queue, as carried by the queue's stream. */
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

type Kind = 'string' | 'number' | 'boolean' | 'object';

/** The required fields of each event besides `v`, `at` and `type`. */
const FIELDS: { readonly [E in QueueEvent as E['type']]: Readonly<Record<string, Kind>> } = {
  submitted: { cluster: 'number', procs: 'object', owner: 'string' },
  materialized: { cluster: 'number', procs: 'object', done: 'boolean' },
  transition: { job: 'string', event: 'string', from: 'string', to: 'string', attempt: 'number', set: 'object' },
  edited: { job: 'string', set: 'object' },
  'cluster-edited': { cluster: 'number', set: 'object' },
  routed: { job: 'string', manager: 'string', site: 'string' },
  candidate: {
    job: 'string',
    attempt: 'number',
    manager: 'string',
    site: 'string',
    event: 'string',
    to: 'string',
  },
  retired: { jobs: 'object' },
  notice: { about: 'string', message: 'string' },
};
const SHAPES = new Map(Object.entries(FIELDS).map(([type, fields]) => [type, Object.entries(fields)]));

/**
 * Whether it is an event of this format. The fields are checked by hand and not by a schema: a daemon reads thousands
 * of events a second.
 */
export function isQueueEvent(value: unknown): value is QueueEvent {
  if (typeof value !== 'object' || value === null) return false;
  if (!('v' in value && value.v === 1 && 'at' in value && typeof value.at === 'number')) return false;
  const fields = 'type' in value && typeof value.type === 'string' ? SHAPES.get(value.type) : undefined;
  return fields?.every(([name, kind]) => typeof Reflect.get(value, name) === kind) === true;
}
