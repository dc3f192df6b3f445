import { CANDIDATE_LIFE, type CandidateState } from './candidate-life.ts';
import { LIFE, type State, STATES, type Work } from './life.ts';

/**
 * The work of one site is split into work loops that run concurrently, so that a slow submit delays no results. Each
 * round of a loop reads which jobs are in its states and does their work; it holds no state that a crash could lose.
 * The fifth loop polls the site's capacity while there are jobs for the broker to place.
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

/** The work loop that has work for a job in `state`. */
export function workLoopOf(state: State): WorkLoop | undefined {
  return state === 'idle' ? 'submit' : WORK_LOOP_OF[LIFE[state].does];
}

/** States in which a job has, or may have, an attempt at the site: counted by our limit. */
export const HAS_PLACE: readonly State[] = STATES.filter((s) => ['prepare', 'commit', 'watch'].includes(LIFE[s].does));

/** States in which a job is, or may be, in the site's queue: counted by the site's own limits. */
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

/** Which work loops of which sites have work. */
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

/** Whether the candidate has, or may have, an attempt at the site. */
export function hasPlace({ state }: Pick<CandidateCount, 'state'>): boolean {
  return state !== 'withdrawing';
}

/** Whether the candidate may be in the site's queue. */
export function isThere({ state }: Pick<CandidateCount, 'state'>): boolean {
  return state === 'waiting' || state === 'withdrawing';
}
