import type { Work } from './life.ts';

/**
 * The life of a candidate: one of several attempts of a flooded job (`want_flood`), each at another site. The first to
 * ask for leave to start becomes the job's attempt. A candidate is withdrawn when another was chosen or the job ended.
 */
export type CandidateState = 'preparing' | 'prepared' | 'waiting' | 'withdrawing';

export type CandidateEvent =
  | 'opened' // the broker wants the job at this site too
  | 'prepared'
  | 'committed'
  | 'lost' // the site no longer has it; without leave, it cannot have started
  | 'refused' // the site will never accept it
  | 'granted' // it has become the job's attempt and is no longer a candidate
  | 'withdraw' // the job no longer needs it
  | 'withdrawn'; // the site has confirmed that it will not run; nothing of it is left

/** The result of a step: another state, or `gone` when nothing is left of the candidate. */
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
