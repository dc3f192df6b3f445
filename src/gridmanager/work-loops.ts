import { CANDIDATE_LIFE, type CandidateState } from '../job/candidate-life.ts';
import { LIFE, type State, STATES, type Work } from '../job/life.ts';

/**
 * A site's work goes in four work loops side by side, so that a slow submit holds up no result. A work loop's round reads which
 * jobs are in its states and does their work; it keeps nothing that a crash could lose. A fifth asks the site what it has,
 * while there are jobs that a broker places.
 */
export type WorkLoop = 'submit' | 'watch' | 'results' | 'cancel' | 'capacityPoll';
export const WORK_LOOPS: readonly WorkLoop[] = ['submit', 'watch', 'results', 'cancel', 'capacityPoll'];

const WORK_LOOP_OF: Readonly<Record<Work, WorkLoop | undefined>> = {
  nothing: undefined,
  prepare: 'submit',
  commit: 'submit',
  watch: 'watch',
  fetch: 'results',
  decide: 'results',
  forget: 'results',
  cancel: 'cancel',
};

/** The work loop that has work to do for a job in `state`. */
export function workLoopOf(state: State): WorkLoop | undefined {
  return state === 'idle' ? 'submit' : WORK_LOOP_OF[LIFE[state].does];
}

/** Jobs in these states have, or may have, a record at the site: what its limit counts. */
export const HAS_PLACE: readonly State[] = STATES.filter((s) => ['prepare', 'commit', 'watch'].includes(LIFE[s].does));

/** Jobs in these states are, or may be, in the site's queue: what its own limits count. */
export const IS_THERE: readonly State[] = STATES.filter((s) => ['watch', 'cancel'].includes(LIFE[s].does));

export interface Count {
  readonly site: string;
  readonly state: State;
  readonly jobs: number;
}

export interface CandidateCount {
  readonly site: string;
  readonly state: CandidateState;
  readonly candidates: number;
}

/** Which work loops of which sites have something to do. */
export function workLoopsWanted(
  counts: readonly Count[],
  candidates: readonly CandidateCount[] = [],
): ReadonlyMap<string, ReadonlySet<WorkLoop>> {
  const wanted = new Map<string, Set<WorkLoop>>();
  const want = (site: string, workLoop: WorkLoop | undefined) => {
    if (workLoop) wanted.set(site, (wanted.get(site) ?? new Set<WorkLoop>()).add(workLoop));
  };
  for (const { site, state, jobs } of counts) if (jobs > 0 && site !== '') want(site, workLoopOf(state));
  for (const { site, state, candidates: count } of candidates)
    if (count > 0) want(site, WORK_LOOP_OF[CANDIDATE_LIFE[state].does]);
  return wanted;
}

/** Candidates that have, or may have, a record at the site. */
export function hasPlace({ state }: Pick<CandidateCount, 'state'>): boolean {
  return state !== 'withdrawing';
}

/** Candidates that may be in its queue. */
export function isThere({ state }: Pick<CandidateCount, 'state'>): boolean {
  return state === 'waiting' || state === 'withdrawing';
}
