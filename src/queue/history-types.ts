import type { Attrs } from '../job/attrs.ts';
import type { JobId } from '../job/ids.ts';
import type { State } from '../job/life.ts';

/** A job as the history keeps it. */
export interface HistoryRecord {
  readonly id: JobId;
  readonly state: State;
  /** Unix seconds of its retirement. */
  readonly retired: number;
  readonly attrs: Attrs;
}

export interface History {
  /** Newest first. */
  read(query?: {
    readonly ids?: readonly JobId[];
    readonly clusters?: readonly number[];
    readonly where?: (job: HistoryRecord) => boolean;
    readonly limit?: number;
  }): AsyncIterable<HistoryRecord>;
  /** Forgets the oldest jobs beyond the newest `jobs` (a file at a time, so a few more stay), and those that left the queue more than `seconds` ago. */
  prune(keep: { readonly jobs: number; readonly seconds: number }): Promise<void>;
}
