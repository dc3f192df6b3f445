import type { Attrs } from '../job/attrs.ts';
import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';
import type { JobRecord } from './types.ts';

/** A job as the history keeps it. */
export interface HistoryRecord {
  readonly id: JobId;
  readonly state: State;
  /** Unix seconds of its retirement. */
  readonly retired: number;
  readonly attrs: Attrs;
}

/** What every sight of a job has. */
export type SeenJob = Pick<JobRecord, 'id' | 'state' | 'attrs'>;

/** Which jobs a look is for: ids and clusters are alternatives, all else narrows. */
export interface LookWish {
  readonly ids?: readonly JobId[];
  readonly clusters?: readonly number[];
  readonly owner?: string;
  readonly where?: (job: SeenJob) => boolean;
}

export interface HistoryQuery extends LookWish {
  /** Other wishes: what any of them names. */
  readonly or?: readonly LookWish[];
  /** Jobs that are not asked for. */
  readonly but?: { has(id: JobId): boolean };
  /** Of a job only the newest record, and only if that is wished for. */
  readonly once?: boolean;
  readonly limit?: number;
}

export interface History {
  /** Newest first. A job that was taken out of the history again (an adopted attempt) is there once for each time that it left the queue. */
  read(query?: HistoryQuery): AsyncIterable<HistoryRecord>;
  /** Forgets the oldest jobs beyond the newest `jobs` (a file at a time, so a few more stay), and those that left the queue more than `seconds` ago. */
  prune(keep: { readonly jobs: number; readonly seconds: number }): Promise<void>;
}

/** Some jobs of a look, and where they were. */
export type Sighting =
  | { readonly in: 'queue'; readonly jobs: readonly JobRecord[] }
  | { readonly in: 'history'; readonly jobs: readonly HistoryRecord[] };
