import type { Work } from './life.ts';

/**
 * The life of a candidate: one of several attempts of a flooded job (`want_flood`), each at another site, of which the first
 * that asks for leave to start becomes the job's attempt. A candidate whose job was given to another, or ended, is withdrawn.
 */
export type CandidateState = 'preparing' | 'prepared' | 'waiting' | 'withdrawing';

export type CandidateEvent =
  | 'opened' // the broker wants the job at this site too
  | 'prepared'
  | 'committed'
  | 'lost' // the site has it no more; without leave it cannot have started
  | 'refused' // the site will not have it, ever
  | 'granted' // it is the job's attempt now, and no candidate any more
  | 'withdraw' // the job needs it no more
  | 'withdrawn'; // the site has confirmed that it will not run: nothing is left of it

/** Where a step leads: another state, or nothing is left of the candidate. */
export type CandidateNext = CandidateState | 'gone';

export interface CandidateRow {
  readonly does: Extract<Work, 'prepare' | 'commit' | 'watch' | 'cancel'>;
  readonly on: Readonly<Partial<Record<CandidateEvent, CandidateNext>>>;
}

export const CANDIDATE_LIFE: Readonly<Record<CandidateState, CandidateRow>> = {
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

export const CANDIDATE_STATES = Object.keys(CANDIDATE_LIFE) as readonly CandidateState[];
