import type { DagOrder, DagProgress, Limits, Problem } from '../dag/api.ts';
import type { State } from '../job/life.ts';

export interface DagSubmitRequest {
  /** DAG files and how they are to be run; paths relative to the present directory. */
  readonly order: DagOrder;
  /** Start over, replacing the files of an earlier run. */
  readonly force?: boolean;
  /** Replace the files of an earlier submit and continue. */
  readonly updateSubmit?: boolean;
  /** Lines for the submit description of the DAG's manager. */
  readonly append?: readonly string[];
  /** Variables of this environment, by name, and assignments that the manager and its scripts get. */
  readonly includeEnv?: readonly string[];
  readonly insertEnv?: readonly string[];
}

export interface DagSubmitted {
  readonly cluster: number;
  /** The submit description that was written. */
  readonly file: string;
  /** The manager's log, `.dagman.out`. */
  readonly log: string;
  readonly warnings: readonly Problem[];
}

/** How a DAG stands. */
export interface DagStatus {
  readonly cluster: number;
  readonly files: readonly string[];
  /** Absolute. */
  readonly directory: string;
  readonly batchName: string;
  /** Of its manager's job; `gone` where it has left the queue. */
  readonly manager: State | 'gone';
  /** Unix seconds. */
  readonly submitted: number;
  /** DAGMan's, once the DAG has ended. */
  readonly exitCode?: number;
  /** Absent before the manager has begun, and where the DAG could not be read. */
  readonly progress?: DagProgress;
}

export type DagLimits = Partial<Limits>;
