import { parseAttemptKey } from '../../../job/ids.ts';
import type { Ending } from '../../../site/contract.ts';
import type { Attempt } from '../attempts.ts';
import type { GangView, NodeView } from './gang-life.ts';
import { nodesOf } from './nodes.ts';

/** One start of a parallel job: the attempts of its cluster, with the nodes granted to them. */
export interface Round {
  readonly gang: string;
  /** In the order in which their nodes are numbered. */
  readonly parts: readonly Attempt[];
  phase: GangView['phase'];
  /** When this phase began, by the monotonic clock, in milliseconds. */
  since: number;
  /** Nodes that never ran and never will, and why. */
  readonly never: Map<number, string>;
}

export function roundOf(gang: string, parts: readonly Attempt[], now: number): Round {
  const started = parts.some(({ gone }) => gone) ? 'started' : 'staging';
  const phase = parts.some(({ decided }) => decided) ? 'ending' : started;
  const round: Round = { gang, parts, phase, since: now, never: new Map() };
  for (const part of parts) part.all = () => nodesIn(round);
  return round;
}

export function nodesIn({ parts }: Round): Attempt[] {
  return parts.flatMap((part) => nodesOf(part));
}

export function viewOf(round: Round, now: number): GangView {
  const { parts, phase, since } = round;
  const wishes = new Set(parts.map(({ cancelling }) => cancelling));
  return {
    phase,
    nodes: nodesIn(round).map((node) => nodeView(node, round)),
    since: (now - since) / 1000,
    cancelled:
      wishes.has('remove') || wishes.has('if-not-started') ? 'remove' : wishes.has('vacate') ? 'vacate' : undefined,
    waitsForAll: parts.some(({ request }) => request.gang?.waitsForAll === true),
  };
}

function nodeView(attempt: Attempt, { never }: Round): NodeView {
  const number = attempt.node?.number ?? 0;
  const why = never.get(number);
  if (why !== undefined) return { number, is: 'over', why };
  if (attempt.phase === 'ended') {
    const { ending } = attempt;
    return { number, is: 'over', ...(ending && { how: ending.how }) };
  }
  if (attempt.phase === 'running' || attempt.phase === 'suspended') return { number, is: 'running' };
  return { number, is: attempt.ready ? 'ready' : 'coming' };
}

/** Of the jobs of a cluster, those that were not withdrawn themselves have lost nodes, and run again with the others. */
export function endingFor(part: Attempt, { parts }: Round, ending: Ending): Ending {
  const withdrawn = parts.find(({ cancelling }) => cancelling === 'remove' || cancelling === 'if-not-started');
  const { how } = ending;
  if (how.kind !== 'by-site' || how.cause !== 'cancelled' || !withdrawn || part.cancelling !== undefined) return ending;
  const { cluster, proc } = parseAttemptKey(withdrawn.key) ?? {};
  const message = `job ${cluster}.${proc}, which ends together with it, was withdrawn`;
  return { ...ending, how: { kind: 'by-site', cause: 'node-fail', message } };
}

/** The ending of one attempt of the job: what its nodes used, and how the whole job ended. */
export function endingOf(part: Attempt): Ending {
  const how = part.decided?.how ?? { kind: 'by-site', cause: 'vanished', message: 'nobody knows how it ended' };
  const endings = nodesOf(part).flatMap(({ ending }) => ending ?? []);
  const sum = (of: (one: Ending) => number | undefined) => {
    const known = endings.flatMap((one) => of(one) ?? []);
    return known.length === 0 ? undefined : known.reduce((a, b) => a + b, 0);
  };
  const user = sum(({ usage }) => usage?.userCpuSeconds);
  const system = sum(({ usage }) => usage?.systemCpuSeconds);
  const most = Math.max(0, ...endings.map(({ usage }) => usage?.maxRssKb ?? 0));
  const starts = endings.flatMap(({ startedAt }) => startedAt ?? []);
  const ends = endings.flatMap(({ endedAt }) => endedAt ?? []);
  return {
    how,
    ...(starts.length === 0 ? {} : { startedAt: Math.min(...starts) }),
    ...(ends.length === 0 ? {} : { endedAt: Math.max(...ends) }),
    usage: {
      ...(user === undefined ? {} : { userCpuSeconds: user }),
      ...(system === undefined ? {} : { systemCpuSeconds: system }),
      ...(most > 0 ? { maxRssKb: most } : {}),
    },
  };
}
