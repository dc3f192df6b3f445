import type { Attrs } from '../job/attrs.ts';
import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { JobRecord } from './types.ts';

/** A job in the history. */
export interface HistoryRecord {
  readonly id: JobId;
  readonly state: State;
  /** Unix seconds of its retirement. */
  readonly retired: number;
  readonly attrs: Attrs;
}

/** The fields common to jobs of the queue and of the history. */
export type SeenJob = Pick<JobRecord, 'id' | 'state' | 'attrs'>;

/** Which jobs to look for: ids and clusters are alternatives, all other conditions narrow the result. */
export interface LookWish {
  readonly ids?: readonly JobId[];
  readonly clusters?: readonly number[];
  readonly owner?: string;
  readonly where?: (job: SeenJob) => boolean;
}

export interface HistoryQuery extends LookWish {
  /** Further wishes: a job matches if any of them selects it. */
  readonly or?: readonly LookWish[];
  /** Jobs to skip. */
  readonly but?: { has(id: JobId): boolean };
  /** Consider only the newest record of each job, even if it does not match. */
  readonly once?: boolean;
  readonly limit?: number;
}

/** What of the history stays. Times are seconds before now. */
export interface HistoryKeep {
  /** So many of the newest jobs, by whole files, so a few more. */
  readonly jobs: number;
  /** None that left the queue longer ago. */
  readonly seconds: number;
  /**
   * However many there are, those that left it since, and those of clusters that are still in the queue: who waits for a cluster asks
   * how each of its jobs ended.
   */
  readonly recent: number;
}

export interface History {
  /**
   * Newest first. A job that was restored from the history (an adopted attempt) has one record for each time it left
   * the queue.
   */
  read(query?: HistoryQuery): AsyncIterable<HistoryRecord>;
  prune(keep: HistoryKeep): Promise<void>;
}

/** Some of the jobs found by `look`, and where they were found. */
export type Sighting =
  | { readonly in: 'queue'; readonly jobs: readonly JobRecord[] }
  | { readonly in: 'history'; readonly jobs: readonly HistoryRecord[] };
