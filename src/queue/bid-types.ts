import type { BidEvent, BidNext, BidState } from '../job/bid-life.ts';
import type { JobId } from '../job/ids.ts';
import type { Lease } from './types.ts';

/** One of several attempts of a job, each at another site, before any has started (job/bid-life.ts). */
export interface Bid {
  readonly id: JobId;
  readonly attempt: number;
  readonly manager: string;
  readonly site: string;
  readonly state: BidState;
  /** Unix seconds since when it is in this state. */
  readonly since: number;
  /** The site's words, '' where there are none. */
  readonly words: string;
}

export interface JobBids {
  readonly id: JobId;
  readonly open: readonly Bid[];
  /** Sites that will not have the job, with their words; a release forgets them. */
  readonly refused: readonly { readonly site: string; readonly words: string }[];
}

export type BidStep =
  | { readonly id: JobId; readonly event: 'opened'; readonly manager: string; readonly site: string }
  | {
      readonly id: JobId;
      readonly attempt: number;
      /** Absent: only the words change. A grant is the job's change ('granted'). */
      readonly event?: Exclude<BidEvent, 'opened' | 'granted'>;
      readonly words?: string;
    };

export type BidStepResult =
  | { readonly ok: true; readonly state: BidNext; readonly attempt: number }
  | { readonly ok: false; readonly why: 'no-such-job' | 'no-such-bid' | 'wrong-state' | 'stale-epoch' };

export interface BidPlace {
  readonly manager: string;
  readonly site: string;
  readonly state: BidState;
  readonly bids: number;
}

/** The bids of flooded jobs. They outlive their job, until their sites have confirmed that they will not run. */
export interface Bids {
  /** Each step by itself, in order. A bid is opened only for an idle job without a site, and one at a site. */
  step(steps: readonly BidStep[], lease?: Lease): Promise<readonly BidStepResult[]>;
  /** The oldest first. */
  next(place: {
    readonly manager: string;
    readonly site: string;
    readonly state: BidState;
    readonly limit?: number;
  }): Promise<readonly Bid[]>;
  /** In the order asked for. */
  of(ids: readonly JobId[]): Promise<readonly JobBids[]>;
  places(): Promise<readonly BidPlace[]>;
}
