import type { ScriptSpec, ScriptType } from '../language/commands.ts';

/** How an execution ended. */
export type Ending = { readonly code: number } | { readonly signal: number };

export type JobChange =
  | { readonly what: 'execute' | 'suspended' | 'unsuspended' | 'released' | 'aborted' }
  /** `code`: HTCondor's code of the eviction; that of a requeue unless given. */
  | { readonly what: 'evicted'; readonly code?: number }
  /** `code`, `subcode`: HoldReasonCode and HoldReasonSubCode, 0 unless given. */
  | { readonly what: 'held'; readonly reason: string; readonly code?: number; readonly subcode?: number }
  /** `usage`: attributes of what the run took, as expression texts, for the log. */
  | { readonly what: 'terminated'; readonly end: Ending; readonly usage?: Readonly<Record<string, string>> };

/** What happens to a DAG. Events are JSON: they are what the journal keeps. */
export type DagEvent =
  | { readonly is: 'submitted'; readonly node: number; readonly cluster: number; readonly procs: number }
  | { readonly is: 'submit-failed'; readonly node: number; readonly reason: string; readonly again: boolean }
  /** A submit that was asked for was not made: the DAG has been told to remove its jobs. */
  | { readonly is: 'unsent'; readonly node: number }
  | { readonly is: 'job'; readonly cluster: number; readonly proc: number; readonly change: JobChange }
  | {
      readonly is: 'script-ended';
      readonly node: number;
      readonly type: ScriptType;
      readonly end: Ending;
      /** Why it could not be started; its code is then 1. */
      readonly notStarted?: string;
    }
  /** The provisioner node says that its resources are there. */
  | { readonly is: 'provisioned' }
  | { readonly is: 'halt' }
  | { readonly is: 'resume' }
  /** The DAG is to be removed. Said again it means nothing. */
  | { readonly is: 'remove' }
  | { readonly is: 'throttle'; readonly limits: Partial<Limits> }
  /** Time has passed. */
  | { readonly is: 'tick' };

/** 0 is no limit. */
export interface Limits {
  /** Nodes with jobs in the queue. */
  readonly maxJobs: number;
  /** Idle jobs in the queue. */
  readonly maxIdle: number;
  readonly maxPre: number;
  readonly maxPost: number;
  readonly maxHold: number;
}

/** What a DAG wants done. */
export type DagCommand =
  | { readonly do: 'submit'; readonly node: number }
  | {
      readonly do: 'script';
      readonly node: number;
      readonly type: ScriptType;
      readonly argv: readonly string[];
      readonly debug: ScriptSpec['debug'];
    }
  | { readonly do: 'remove-node'; readonly node: number; readonly cluster: number; readonly reason: string }
  /** Of all nodes; `beforeFinal`: the final node is still to run, and services live until it has. */
  | { readonly do: 'remove-all'; readonly reason: string; readonly beforeFinal: boolean }
  | { readonly do: 'kill-scripts' }
  | { readonly do: 'rescue' }
  | { readonly do: 'save-point'; readonly node: number }
  /** A `tick` is wanted at this time (Unix milliseconds). */
  | { readonly do: 'wake'; readonly at: number }
  /** A line for the DAG manager's log. */
  | { readonly do: 'say'; readonly text: string }
  /** A line for the jobstate log. `id`: a job, a return value, or `-`. */
  | {
      readonly do: 'jobstate';
      readonly node: number;
      readonly word: string;
      readonly id: string;
      readonly sequence: number;
    }
  /** An event for the node jobs' user log that no job writes. */
  | { readonly do: 'log'; readonly node: number; readonly event: NodeLogEvent }
  | { readonly do: 'finish'; readonly code: number; readonly removed: boolean; readonly crashed: boolean };

export type NodeLogEvent =
  | { readonly type: 'post-script-terminated'; readonly cluster: number; readonly proc: number; readonly end: Ending }
  /** It is removed as the DAG ends, and nobody will hear of its end. */
  | { readonly type: 'aborted'; readonly cluster: number; readonly proc: number; readonly reason: string }
  | { readonly type: 'noop-submit' | 'noop-terminated' | 'pre-skip'; readonly serial: number };
