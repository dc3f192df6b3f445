import * as z from 'zod';
import { count, flag, maybe, type Read, text, textsByName } from '../../util/schema.ts';
import { SCRIPT_TYPES, type ScriptSpec, type ScriptType } from '../language/commands.ts';

/** How an execution ended. */
const END = z.union([z.strictObject({ code: z.number() }), z.strictObject({ signal: z.number() })]);
export type NodeJobEnd = Read<typeof END>;

const JOB_CHANGE = z.discriminatedUnion('what', [
  z.strictObject({ what: z.enum(['execute', 'suspended', 'unsuspended', 'released', 'aborted']) }),
  /** `code`: HTCondor's eviction code; by default that of a requeue. */
  z.strictObject({ what: z.literal('evicted'), code: maybe(z.number()) }),
  /** `code`, `subcode`: HoldReasonCode and HoldReasonSubCode; 0 by default. */
  z.strictObject({
    what: z.literal('held'),
    reason: text,
    code: maybe(z.number()),
    subcode: maybe(z.number()),
  }),
  /** `usage`: what the run used, as attributes with expression texts, for the log. */
  z.strictObject({ what: z.literal('terminated'), end: END, usage: maybe(textsByName) }),
]);
export type JobChange = Read<typeof JOB_CHANGE>;

/** Those that are given. 0 means no limit. */
const SOME_LIMITS = z.strictObject({
  /** Nodes with jobs in the queue. */
  maxJobs: maybe(z.number()),
  /** Idle jobs in the queue. */
  maxIdle: maybe(z.number()),
  maxPre: maybe(z.number()),
  maxPost: maybe(z.number()),
  maxHold: maybe(z.number()),
});
export type Limits = Required<Read<typeof SOME_LIMITS>>;

const HALT = z.strictObject({ is: z.literal('halt') });
const RESUME = z.strictObject({ is: z.literal('resume') });
/** Removes the DAG. Repeating it has no effect. */
const REMOVE = z.strictObject({ is: z.literal('remove') });
const THROTTLE = z.strictObject({ is: z.literal('throttle'), limits: SOME_LIMITS });

/** What a user can tell a running DAG. */
export const TOLD = z.discriminatedUnion('is', [HALT, RESUME, REMOVE, THROTTLE]);
export type Told = Read<typeof TOLD>;

/** What can happen to a DAG. Events are JSON because the journal stores them. */
export const DAG_EVENT = z.discriminatedUnion('is', [
  z.strictObject({ is: z.literal('submitted'), node: count, cluster: count, procs: count }),
  z.strictObject({ is: z.literal('submit-failed'), node: count, reason: text, again: flag }),
  /** A requested submit was not made because the DAG has been told to remove its jobs. */
  z.strictObject({ is: z.literal('unsent'), node: count }),
  z.strictObject({ is: z.literal('job'), cluster: count, proc: count, change: JOB_CHANGE }),
  z.strictObject({
    is: z.literal('script-ended'),
    node: count,
    type: z.enum(SCRIPT_TYPES),
    end: END,
    /** Why it could not be started; its code is then 1. */
    notStarted: maybe(text),
  }),
  /** The provisioner node reports that its resources are ready. */
  z.strictObject({ is: z.literal('provisioned') }),
  HALT,
  RESUME,
  REMOVE,
  THROTTLE,
  /** Time has passed. */
  z.strictObject({ is: z.literal('tick') }),
]);
export type DagEvent = Read<typeof DAG_EVENT>;

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
  | {
      readonly type: 'post-script-terminated';
      readonly cluster: number;
      readonly proc: number;
      readonly end: NodeJobEnd;
    }
  /** The job is removed as the DAG ends, so that its end is never reported. */
  | { readonly type: 'aborted'; readonly cluster: number; readonly proc: number; readonly reason: string }
  | { readonly type: 'noop-submit' | 'noop-terminated' | 'pre-skip'; readonly serial: number };
