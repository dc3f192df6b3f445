import type { Ending } from '../../../site/contract.ts';

/** A node of a parallel job, as far as its job's life depends on it. */
export interface NodeView {
  readonly number: number;
  /**
   * `coming`: granted, not ready. `ready`: it waits for the order to start. `running`: it has been told to start.
   * `over`: it ended, or it is certain that it never runs.
   */
  readonly is: 'coming' | 'ready' | 'running' | 'over';
  /** How it ended; absent if it never ran. */
  readonly how?: Ending['how'];
  /** Why it never ran. */
  readonly why?: string;
}

export interface GangView {
  /** `staging`: nodes are granted. `started`: they were told to start. `ending`: what is left of it is being ended. */
  readonly phase: 'staging' | 'started' | 'ending';
  readonly nodes: readonly NodeView[];
  /** Seconds in this phase. */
  readonly since: number;
  /** The user wants it ended, and how. */
  readonly cancelled: 'remove' | 'vacate' | undefined;
  /** It ends when all nodes have ended. */
  readonly waitsForAll: boolean;
}

/** What has to be done with a parallel job. */
export type Step =
  | { readonly do: 'wait' }
  /** Every node is ready: they may start. */
  | { readonly do: 'go' }
  /** None has started, and none will: their slots are given back, and the job waits again. */
  | { readonly do: 'release'; readonly why: string }
  /** The nodes that still run are ended; `how`: the job's ending. */
  | { readonly do: 'end'; readonly how: Ending['how'] }
  /** Nothing of it runs any more. */
  | { readonly do: 'finish' };

/** How long nodes may take to be ready, and to start after that; seconds. */
export const MEET_SECONDS = 60;

const WAIT: Step = { do: 'wait' };

/**
 * The life of a parallel job from its grant until its end. All its nodes start or none does; a node that is lost ends
 * the others, and the job runs again; the exit of node 0 is the job's.
 */
export function stepOf(gang: GangView): Step {
  switch (gang.phase) {
    case 'staging':
      return whileStaging(gang);
    case 'started':
      return whileStarted(gang);
    case 'ending':
      return gang.nodes.every(({ is }) => is === 'over') ? { do: 'finish' } : WAIT;
  }
}

function whileStaging({ nodes, since, cancelled }: GangView): Step {
  const lost = nodes.find(({ is }) => is === 'over');
  if (cancelled !== undefined) return { do: 'release', why: 'it was asked to end' };
  if (lost) return { do: 'release', why: `node ${lost.number} cannot start: ${lost.why ?? 'it was lost'}` };
  if (nodes.every(({ is }) => is === 'ready')) return { do: 'go' };
  if (since <= MEET_SECONDS) return WAIT;
  const late = nodes.filter(({ is }) => is === 'coming').map(({ number }) => number);
  return {
    do: 'release',
    why: `${late.length === 1 ? 'node' : 'nodes'} ${late.join(', ')} ${late.length === 1 ? 'was' : 'were'} not ready within ${MEET_SECONDS} s`,
  };
}

function whileStarted({ nodes, since, cancelled, waitsForAll }: GangView): Step {
  const bySite = (message: string, cause: 'cancelled' | 'node-fail' = 'node-fail'): Step => ({
    do: 'end',
    how: { kind: 'by-site', cause, message },
  });
  if (cancelled === 'remove') return bySite('its owner withdrew it', 'cancelled');
  const first = nodes.find(({ number }) => number === 0);
  if (first?.how && first.how.kind !== 'by-site') {
    const all = nodes.every(({ is }) => is === 'over');
    if (!waitsForAll || all) return { do: 'end', how: first.how };
  }
  for (const { number, is, how, why } of nodes) {
    if (is !== 'over') continue;
    if (how === undefined) return bySite(`node ${number} did not start: ${why ?? 'it was lost'}`);
    if (how.kind !== 'by-site') continue;
    // As when its worker dies: unlike a plain job's, its start is repeated anyway when another node is lost.
    const cause = how.cause === 'vanished' ? 'node-fail' : how.cause;
    return { do: 'end', how: { ...how, cause, message: `node ${number}: ${how.message}` } };
  }
  const waiting = nodes.filter(({ is }) => is === 'coming' || is === 'ready').map(({ number }) => number);
  if (waiting.length > 0 && since > MEET_SECONDS)
    return bySite(`node ${waiting.join(', ')} did not start within ${MEET_SECONDS} s`);
  return WAIT;
}
