import { BID_LIFE, type BidState } from '../job/bid-life.ts';
import { LIFE, type State, STATES, type Work } from '../job/life.ts';

/**
 * A site's work goes in four lanes side by side, so that a slow submit holds up no result. A lane's round reads which
 * jobs are in its states and does their work; it keeps nothing that a crash could lose. A fifth asks the site what it has,
 * while there are jobs that a broker places.
 */
export type Lane = 'submit' | 'watch' | 'results' | 'cancel' | 'survey';
export const LANES: readonly Lane[] = ['submit', 'watch', 'results', 'cancel', 'survey'];

const LANE_OF: Readonly<Record<Work, Lane | undefined>> = {
  nothing: undefined,
  prepare: 'submit',
  commit: 'submit',
  watch: 'watch',
  fetch: 'results',
  decide: 'results',
  forget: 'results',
  cancel: 'cancel',
};

/** The lane that has work to do for a job in `state`. */
export function laneOf(state: State): Lane | undefined {
  return state === 'idle' ? 'submit' : LANE_OF[LIFE[state].does];
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

export interface BidCount {
  readonly site: string;
  readonly state: BidState;
  readonly bids: number;
}

/** Which lanes of which sites have something to do. */
export function lanesWanted(
  counts: readonly Count[],
  bids: readonly BidCount[] = [],
): ReadonlyMap<string, ReadonlySet<Lane>> {
  const wanted = new Map<string, Set<Lane>>();
  const want = (site: string, lane: Lane | undefined) => {
    if (lane) wanted.set(site, (wanted.get(site) ?? new Set<Lane>()).add(lane));
  };
  for (const { site, state, jobs } of counts) if (jobs > 0 && site !== '') want(site, laneOf(state));
  for (const { site, state, bids: count } of bids) if (count > 0) want(site, LANE_OF[BID_LIFE[state].does]);
  return wanted;
}

/** Bids that have, or may have, a record at the site. */
export function hasPlace({ state }: Pick<BidCount, 'state'>): boolean {
  return state !== 'withdrawing';
}

/** Bids that may be in its queue. */
export function isThere({ state }: Pick<BidCount, 'state'>): boolean {
  return state === 'waiting' || state === 'withdrawing';
}
