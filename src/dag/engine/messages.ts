import type { ScriptSpec, ScriptType } from '../language/commands.ts';

/** How an execution ended. */
export type Ending = { readonly code: number } | { readonly signal: number };

export type JobChange =
  | { readonly what: 'execute' | 'suspended' | 'unsuspended' | 'released' | 'aborted' }
  /** `code`: HTCondor's eviction code; by default that of a requeue. */
  | { readonly what: 'evicted'; readonly code?: number }
  /** `code`, `subcode`: HoldReasonCode and HoldReasonSubCode; 0 by default. */
  | { readonly what: 'held'; readonly reason: string; readonly code?: number; readonly subcode?: number }
  /** `usage`: what the run used, as attributes with expression texts, for the log. */
  | { readonly what: 'terminated'; readonly end: Ending; readonly usage?: Readonly<Record<string, string>> };

/** What can happen to a DAG. Events are JSON because the journal stores them. */
export type DagEvent =
  | { readonly is: 'submitted'; readonly node: number; readonly cluster: number; readonly procs: number }
  | { readonly is: 'submit-failed'; readonly node: number; readonly reason: string; readonly again: boolean }
  /** A requested submit was not made because the DAG has been told to remove its jobs. */
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
  /** The provisioner node reports that its resources are ready. */
  | { readonly is: 'provisioned' }
  | { readonly is: 'halt' }
  | { readonly is: 'resume' }
  /** Removes the DAG. Repeating it has no effect. */
  | { readonly is: 'remove' }
  | { readonly is: 'throttle'; readonly limits: Partial<Limits> }
  /** Time has passed. */
  | { readonly is: 'tick' };

/** 0 means no limit. */
export interface Limits {
  /** Nodes with jobs in the queue. */
  readonly maxJobs: number;
  /** Idle jobs in the queue. */
  readonly maxIdle: number;
  readonly maxPre: number;
  readonly maxPost: number;
  readonly maxHold: number;
}

/** What a DAG asks its manager to do. */
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
  /** For all nodes. `beforeFinal`: the final node has yet to run, and services stay alive until it has. */
  | { readonly do: 'remove-all'; readonly reason: string; readonly beforeFinal: boolean }
  | { readonly do: 'kill-scripts' }
  | { readonly do: 'rescue' }
  | { readonly do: 'save-point'; readonly node: number }
  /** Asks for a `tick` at this time (Unix milliseconds). */
  | { readonly do: 'wake'; readonly at: number }
  /** A line for the DAG manager's log. */
  | { readonly do: 'say'; readonly text: string }
  /** A line for the jobstate log. `id` is a job, a return value, or `-`. */
  | {
      readonly do: 'jobstate';
      readonly node: number;
      readonly word: string;
      readonly id: string;
      readonly sequence: number;
    }
  /** An event in the node jobs' user log that no job writes by itself. */
  | { readonly do: 'log'; readonly node: number; readonly event: NodeLogEvent }
  | { readonly do: 'finish'; readonly code: number; readonly removed: boolean; readonly crashed: boolean };

export type NodeLogEvent =
  | { readonly type: 'post-script-terminated'; readonly cluster: number; readonly proc: number; readonly end: Ending }
  /** The job is removed as the DAG ends, so that its end is never reported. */
  | { readonly type: 'aborted'; readonly cluster: number; readonly proc: number; readonly reason: string }
  | { readonly type: 'noop-submit' | 'noop-terminated' | 'pre-skip'; readonly serial: number };
