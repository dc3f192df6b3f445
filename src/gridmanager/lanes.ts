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

export interface Count {
  readonly site: string;
  readonly state: State;
  readonly jobs: number;
}

/** Which lanes of which sites have something to do. */
export function lanesWanted(counts: readonly Count[]): ReadonlyMap<string, ReadonlySet<Lane>> {
  const wanted = new Map<string, Set<Lane>>();
  for (const { site, state, jobs } of counts) {
    const lane = jobs > 0 && site !== '' ? laneOf(state) : undefined;
    if (!lane) continue;
    const lanes = wanted.get(site) ?? new Set<Lane>();
    wanted.set(site, lanes.add(lane));
  }
  return wanted;
}
