import type { Work } from './life.ts';

/**
 * The life of a bid: one of several attempts of a flooded job (`want_flood`), each at another site, of which the first
 * that asks for leave to start becomes the job's attempt. A bid whose job was given to another, or ended, is withdrawn.
 */
export type BidState = 'preparing' | 'prepared' | 'waiting' | 'withdrawing';

export type BidEvent =
  | 'opened' // the broker wants the job at this site too
  | 'prepared'
  | 'committed'
  | 'lost' // the site has it no more; without leave it cannot have started
  | 'refused' // the site will not have it, ever
  | 'granted' // it is the job's attempt now, and no bid any more
  | 'withdraw' // the job needs it no more
  | 'withdrawn'; // the site has confirmed that it will not run: nothing is left of it

/** Where a step leads: another state, or nothing is left of the bid. */
export type BidNext = BidState | 'gone';

export interface BidRoom {
  readonly does: Extract<Work, 'prepare' | 'commit' | 'watch' | 'cancel'>;
  readonly on: Readonly<Partial<Record<BidEvent, BidNext>>>;
}

export const BID_LIFE: Readonly<Record<BidState, BidRoom>> = {
  preparing: { does: 'prepare', on: { prepared: 'prepared', refused: 'withdrawing', withdraw: 'withdrawing' } },
  prepared: {
    does: 'commit',
    on: { committed: 'waiting', lost: 'preparing', refused: 'withdrawing', withdraw: 'withdrawing' },
  },
  waiting: {
    does: 'watch',
    on: { lost: 'preparing', refused: 'withdrawing', withdraw: 'withdrawing', granted: 'gone' },
  },
  withdrawing: { does: 'cancel', on: { withdrawn: 'gone' } },
};

export const BID_STATES = Object.keys(BID_LIFE) as readonly BidState[];
