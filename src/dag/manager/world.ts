import * as z from 'zod';
import { count, maybe, type Read, text } from '../../util/schema.ts';
import { DAG_EVENT, type NodeJobEnd, type JobChange, type NodeLogEvent, type Told } from '../engine/messages.ts';
import type { Description } from '../language/graph.ts';
import type { ScriptType } from '../language/commands.ts';

/** What the DAG manager asks the queue to submit for one node. */
export interface NodeSubmit {
  /**
   * The node's name. With the DAG manager's cluster and `retry` it identifies the attempt forever; the jobs carry it.
   */
  readonly node: string;
  /** How often the node has been retried before. */
  readonly retry: number;
  readonly description: Description;
  /** The directory in which the description is read and its jobs are submitted; '' means the DAG manager's own. */
  readonly directory: string;
  /** Macros and commands set before the description is read, in order; the description overrides them. */
  readonly before: readonly (readonly [name: string, value: string])[];
  /** Set after the description has been read up to its queue statement; these override it. */
  readonly after: readonly (readonly [name: string, value: string])[];
  /**
   * Attributes that the jobs must carry: DAGNodeName, DAGManJobId, DAGParentNodeNames, DAGNodeRetry. After a crash, the
   * queue is searched by the first, second and last of them.
   */
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The node's priority plus the whole DAG's; a sub-DAG inherits it. */
  readonly priority: number;
  /** Refuse a description that makes more than one job (DAGMAN_PROHIBIT_MULTI_JOBS, and for a provisioner). */
  readonly oneJob: boolean;
}

export type SubmitOutcome =
  | { readonly cluster: number; readonly procs: number }
  /** `again`: it may succeed later. One sentence, with file and line if the description is at fault. */
  | { readonly failed: string; readonly again: boolean };

/** A submit of this DAG that is in the queue. */
export interface FoundSubmit {
  readonly node: string;
  readonly retry: number;
  readonly cluster: number;
  readonly procs: number;
}

export interface ScriptRun {
  readonly node: string;
  readonly type: ScriptType;
  /** Unique for each run within this life of the manager; returned with the script's end. */
  readonly run: number;
  /** The program, looked up in `directory` and not in PATH, and its arguments. No shell interprets them. */
  readonly argv: readonly string[];
  readonly directory: string;
  /** Which of its outputs to return. */
  readonly capture: 'STDOUT' | 'STDERR' | 'ALL' | undefined;
}

/** What happened in the world. `cursor` is where to continue reading after a crash. */
export type Happening =
  | {
      readonly is: 'job';
      readonly cluster: number;
      readonly proc: number;
      readonly change: JobChange;
      readonly cursor: string;
    }
  | { readonly is: 'provisioned'; readonly cursor?: string }
  | {
      readonly is: 'script-ended';
      readonly run: number;
      readonly end: NodeJobEnd;
      readonly notStarted?: string;
      /** The script's output, if it was asked for. */
      readonly output?: string;
    }
  /** A request of the user: `halt`, `resume`, `remove`, `throttle`. */
  | { readonly is: 'told'; readonly event: Told; readonly cursor?: string }
  /** The manager must stop without ending the DAG: it is held, or the agent is shutting down. */
  | { readonly is: 'stop' };

/**
 * The files that a DAG manager reads and writes; paths are as in the DAG. Every write except `append` replaces the file
 * atomically.
 */
export interface DagFiles {
  read(path: string): string | undefined;
  /** The file's canonical name. */
  absolute(path: string): string;
  exists(path: string): boolean;
  write(path: string, text: string): void;
  /** Like `write`, and on disk with its name when it returns. */
  keep(path: string, text: string): void;
  append(path: string, text: string): void;
  /** Its size in bytes; 0 if it does not exist. */
  size(path: string): number;
  truncate(path: string, size: number): void;
  rename(from: string, to: string): void;
  /** Does nothing if the file does not exist. */
  remove(path: string): void;
}

/** What a run of a DAG started from: the first entry of its journal. */
const JOURNAL_BEGIN = z.object({
  rescueFile: z.optional(text),
  /** The rescue file from which the run continues, and the last one that existed; 0 for none. */
  rescueNumber: count,
  lastRescue: count,
  firstSequence: count,
  /** The graph's fingerprint: a DAG that was changed while it ran cannot continue. */
  fingerprint: text,
});
export type JournalBegin = Read<typeof JOURNAL_BEGIN>;

/**
 * One batch of the journal: what happened at one time, and the sizes of the log files before its lines were written.
 */
export const JOURNAL_ENTRY = z.strictObject({
  at: z.number(),
  events: z.array(DAG_EVENT),
  sizes: z.array(count),
  cursor: maybe(text),
  begin: maybe(JOURNAL_BEGIN),
});
export type JournalEntry = Read<typeof JOURNAL_ENTRY>;

export interface Journal {
  /** All that was appended, in order; a last entry cut off by a crash is left out. */
  read(): readonly JournalEntry[];
  /** Returns when the entry is on disk. */
  append(entry: JournalEntry): void;
}

/** Everything that a DAG manager does in the world. */
export interface DagWorld {
  /** Unix milliseconds. */
  now(): number;
  /**
   * What happened since the last call; waits until something does, or until `until` (Unix milliseconds). Job changes
   * come in the order of the queue's stream, starting from the cursor given to `resumeFrom`.
   */
  next(until: number | undefined): Promise<readonly Happening[]>;
  /** Report job changes after this cursor; `undefined` means since the DAG manager's own submit. */
  resumeFrom(cursor: string | undefined): void;
  /** Returns one outcome for each request, in order. By then each submit is either wholly in the queue or refused. */
  submit(requests: readonly NodeSubmit[]): Promise<readonly SubmitOutcome[]>;
  /** This DAG's submits in the queue, found by their attributes, including those of jobs that have ended. */
  findSubmitted(): Promise<readonly FoundSubmit[]>;
  /** Starts the script; its end arrives as a happening. */
  startScript(run: ScriptRun): void;
  killScripts(): void;
  /** Idempotent. */
  removeCluster(cluster: number, reason: string): Promise<void>;
  /** Removes all jobs of this DAG except those of the nodes named. Idempotent. */
  removeAll(reason: string, keep: readonly string[]): Promise<void>;
  /** Publishes these attributes in the ad of the manager's own job as soon as the queue accepts them. */
  show(attributes: Readonly<Record<string, string>>): void;
  readonly files: DagFiles;
  readonly journal: Journal;
  /** The text of one event of the node jobs' user log (made by the user log's own writer). */
  logEvent(event: JobLogEvent): string;
}

/** The events in the node jobs' log (`.nodes.log`). */
export type JobLogEvent =
  | {
      readonly about: 'job';
      readonly at: number;
      readonly node: string;
      readonly cluster: number;
      readonly proc: number;
      readonly change: JobChange | { readonly what: 'submit' };
    }
  | { readonly about: 'node'; readonly at: number; readonly node: string; readonly event: NodeLogEvent };
