import type { DagEvent, Ending, JobChange, NodeLogEvent } from '../engine/messages.ts';
import type { Description } from '../graph.ts';
import type { ScriptType } from '../language/commands.ts';

/** What the DAG manager asks the queue to submit for one node. */
export interface NodeSubmit {
  /** The attempt's name: with the DAG manager's cluster it is unique for ever, and the jobs carry it. */
  readonly node: string;
  /** How often the node was retried before. */
  readonly retry: number;
  readonly description: Description;
  /** The directory in which the description is read and its jobs are submitted; '' is the DAG manager's own. */
  readonly directory: string;
  /** Macros and commands that are set before the description is read, in order: the description wins. */
  readonly before: readonly (readonly [name: string, value: string])[];
  /** Set when the description has been read up to its queue statement: these win. */
  readonly after: readonly (readonly [name: string, value: string])[];
  /**
   * Attributes that the jobs must carry: DAGNodeName, DAGManJobId, DAGParentNodeNames, DAGNodeRetry. The queue is asked
   * by the first, second and last of them after a crash.
   */
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The node's, the whole DAG's added: that of a sub-DAG. */
  readonly priority: number;
  /** Refuse a description that makes more than one job (DAGMAN_PROHIBIT_MULTI_JOBS, and for a provisioner). */
  readonly oneJob: boolean;
}

export type SubmitOutcome =
  | { readonly cluster: number; readonly procs: number }
  /** `again`: it may work later. One sentence, with file and line where the description is at fault. */
  | { readonly failed: string; readonly again: boolean };

/** A submit of this DAG that the queue has. */
export interface FoundSubmit {
  readonly node: string;
  readonly retry: number;
  readonly cluster: number;
  readonly procs: number;
}

export interface ScriptRun {
  readonly node: string;
  readonly type: ScriptType;
  /** Unique for each run within this life of the manager; comes back with the end. */
  readonly run: number;
  /** The program, looked up in `directory` and not in PATH, and its arguments, which no shell sees. */
  readonly argv: readonly string[];
  readonly directory: string;
  /** Which of its outputs are wanted back. */
  readonly capture: 'STDOUT' | 'STDERR' | 'ALL' | undefined;
}

/** What happened in the world. `cursor` says where reading goes on after a crash. */
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
      readonly end: Ending;
      readonly notStarted?: string;
      /** What it wrote, where that was asked for. */
      readonly output?: string;
    }
  /** What the user asked for: `halt`, `resume`, `remove`, `throttle`. */
  | { readonly is: 'told'; readonly event: Told; readonly cursor?: string }
  /** The manager is to stop without ending the DAG: it is held, or the agent goes down. */
  | { readonly is: 'stop' };

/** What a user may tell a running DAG. */
export type Told = Extract<DagEvent, { readonly is: 'halt' | 'resume' | 'remove' | 'throttle' }>;

/** The files that a DAG manager writes and reads; paths as in the DAG. All writes but `append` replace the file at once. */
export interface DagFiles {
  read(path: string): string | undefined;
  /** The one name of the file. */
  absolute(path: string): string;
  exists(path: string): boolean;
  write(path: string, text: string): void;
  append(path: string, text: string): void;
  /** Bytes in it; 0 where it is not there. */
  size(path: string): number;
  truncate(path: string, size: number): void;
  rename(from: string, to: string): void;
  /** No error where it is not there. */
  remove(path: string): void;
}

/** What a run of a DAG was begun with: the first entry of its journal. */
export interface JournalBegin {
  readonly rescueFile: string | undefined;
  /** The rescue file that the run goes on from, and the last that there was; 0 for none. */
  readonly rescueNumber: number;
  readonly lastRescue: number;
  readonly firstSequence: number;
  /** Of the graph: a DAG that was changed while it ran cannot go on. */
  readonly fingerprint: string;
}

/** One batch of the journal: what happened at one time, and how long the log files were before its lines were written. */
export interface JournalEntry {
  readonly at: number;
  readonly events: readonly DagEvent[];
  readonly sizes: readonly number[];
  readonly cursor?: string;
  readonly begin?: JournalBegin;
}

export interface Journal {
  /** All that was appended, in order; a last entry that was cut off by a crash is left out. */
  read(): readonly JournalEntry[];
  /** Returns when the entry is on disk. */
  append(entry: JournalEntry): void;
}

/** Everything a DAG manager does besides thinking. */
export interface DagWorld {
  /** Unix milliseconds. */
  now(): number;
  /**
   * What happened since the last call; waits until something does, or until `until` (Unix milliseconds). Job changes
   * come in the order of the queue's stream, from the cursor given to `resumeFrom` on.
   */
  next(until: number | undefined): Promise<readonly Happening[]>;
  /** Job changes from behind this cursor on; `undefined`: from the DAG manager's own submit on. */
  resumeFrom(cursor: string | undefined): void;
  /** One outcome for each, in order. A submit is in the queue, or refused, when this returns; never half of it. */
  submit(requests: readonly NodeSubmit[]): Promise<readonly SubmitOutcome[]>;
  /** What the queue has of this DAG's submits, by the attributes that they carry, also of jobs that have ended. */
  findSubmitted(): Promise<readonly FoundSubmit[]>;
  /** Starts it; its end is a happening. */
  startScript(run: ScriptRun): void;
  killScripts(): void;
  /** Idempotent. */
  removeCluster(cluster: number, reason: string): Promise<void>;
  /** All jobs of this DAG but those of the nodes named. Idempotent. */
  removeAll(reason: string, keep: readonly string[]): Promise<void>;
  /** Shows these attributes in the ad of the manager's own job, as soon as the queue takes them. */
  show(attributes: Readonly<Record<string, string>>): void;
  readonly files: DagFiles;
  readonly journal: Journal;
  /** The text of one event of the node jobs' user log (the user log's own writer makes it). */
  logEvent(event: JobLogEvent): string;
}

/** What the node jobs' log (`.nodes.log`) gets to see. */
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
