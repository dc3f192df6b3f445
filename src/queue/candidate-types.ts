import type { CandidateEvent, CandidateNext, CandidateState } from '../job/candidate-life.ts';
import type { JobId } from '../job/ids.ts';
import type { Lease } from './types.ts';

/** One of several attempts of a job, each at another site, before any has started (job/candidate-life.ts). */
export interface Candidate {
  readonly id: JobId;
  readonly attempt: number;
  readonly manager: string;
  readonly site: string;
  readonly state: CandidateState;
  /** Time of its last state change, Unix seconds. */
  readonly since: number;
  /** The site's message, or ''. */
  readonly message: string;
}

export interface JobCandidates {
  readonly id: JobId;
  readonly open: readonly Candidate[];
  /** Sites that refused the job, with their messages; cleared by a release. */
  readonly refused: readonly { readonly site: string; readonly message: string }[];
}

export type CandidateStep =
  | { readonly id: JobId; readonly event: 'opened'; readonly manager: string; readonly site: string }
  | {
      readonly id: JobId;
      readonly attempt: number;
      /** Absent: only the message changes. A grant is a change of the job ('granted'). */
      readonly event?: Exclude<CandidateEvent, 'opened' | 'granted'>;
      readonly message?: string;
    };

export type CandidateStepResult =
  | { readonly ok: true; readonly state: CandidateNext; readonly attempt: number }
  | { readonly ok: false; readonly why: 'no-such-job' | 'no-such-candidate' | 'wrong-state' | 'stale-epoch' };

export interface CandidatePlace {
  readonly manager: string;
  readonly site: string;
  readonly state: CandidateState;
  readonly candidates: number;
}

/** The candidates of flooded jobs. They outlive their job, until their sites have confirmed that they will not run. */
export interface Candidates {
  /**
   * Makes each step independently, in order. A candidate can be opened only for an idle job without a site, one for
   * each site.
   */
  step(steps: readonly CandidateStep[], lease?: Lease): Promise<readonly CandidateStepResult[]>;
  /** The oldest first. */
  next(place: {
    readonly manager: string;
    readonly site: string;
    readonly state: CandidateState;
    readonly limit?: number;
  }): Promise<readonly Candidate[]>;
  /** In the order of `ids`. */
  of(ids: readonly JobId[]): Promise<readonly JobCandidates[]>;
  places(): Promise<readonly CandidatePlace[]>;
}
