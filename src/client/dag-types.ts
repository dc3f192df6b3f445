import type { DagOrder, DagProgress, Limits, Problem } from '../dag/api.ts';
import type { State } from '../job/life.ts';

/** What `DagClient.submit` needs: the DAG files, and how their manager is made. */
export interface DagSubmitRequest {
  /** DAG files and how to run them; paths are relative to the current directory. */
  readonly order: DagOrder;
  /** Start over, replacing the files of an earlier run. */
  readonly force?: boolean;
  /** Replace the files of an earlier submit and continue. */
  readonly updateSubmit?: boolean;
  /** Lines to add to the submit description of the DAG's manager. */
  readonly append?: readonly string[];
  /** What the manager and its scripts get: variables of this environment, by name, and assignments. */
  readonly includeEnv?: readonly string[];
  readonly insertEnv?: readonly string[];
}

/** A DAG that was submitted: its manager's job, which is on disk. */
export interface DagSubmitted {
  readonly cluster: number;
  /** The submit description that was written. */
  readonly file: string;
  /** The manager's log, `.dagman.out`. */
  readonly log: string;
  readonly warnings: readonly Problem[];
}

/** The state of a DAG. */
export interface DagStatus {
  readonly cluster: number;
  readonly files: readonly string[];
  /** Absolute. */
  readonly directory: string;
  readonly batchName: string;
  /** The state of its manager's job; `gone` if it has left the queue. */
  readonly manager: State | 'gone';
  /** Unix seconds. */
  readonly submitted: number;
  /** DAGMan's exit code, once the DAG has ended. */
  readonly exitCode?: number;
  /** The rescue file from which it continues; absent if it started afresh, and once it has ended. */
  readonly continuesFrom?: string;
  /** Once it has ended, but not well: the newest rescue file beside it, from which the next submission continues. */
  readonly rescue?: string;
  /** Absent until the manager starts, and if the DAG could not be read. */
  readonly progress?: DagProgress;
}

/** Limits of a running DAG; those that are absent stay as they are, and 0 means no limit. */
export type DagLimits = Partial<Limits>;
