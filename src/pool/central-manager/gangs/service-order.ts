import type { Attempt } from '../attempts.ts';
import type { Priorities } from '../priorities.ts';

/** A parallel job whose attempts are all there. */
export interface Ready {
  readonly gang: string;
  readonly parts: readonly Attempt[];
}

/** Parallel jobs by JobPrio, then in the order in which they were submitted, whoever their owners are. */
export function byAge(ready: readonly Ready[]): Ready[] {
  return [...ready].sort((a, b) => before(a.parts[0], b.parts[0]));
}

/**
 * Parallel jobs as their owners take turns: each time, the owner furthest below its share is served with the best of its
 * jobs, whose cores then count as its own.
 */
export function byTurns(ready: readonly Ready[], priorities: Pick<Priorities, 'order'>): Ready[] {
  const queues = new Map<string, Ready[]>();
  for (const one of byAge(ready)) {
    const owner = ownerOf(one);
    queues.set(owner, [...(queues.get(owner) ?? []), one]);
  }
  const given = new Map<string, number>();
  const served: Ready[] = [];
  while (queues.size > 0) {
    const [owner = ''] = priorities.order(queues.keys(), given);
    const queue = queues.get(owner) ?? [];
    const next = queue.shift();
    if (queue.length === 0) queues.delete(owner);
    if (!next) continue;
    served.push(next);
    given.set(owner, (given.get(owner) ?? 0) + coresOf(next));
  }
  return served;
}

export function ownerOf({ parts }: Ready): string {
  return parts[0]?.request.owner ?? '';
}

function coresOf({ parts }: Ready): number {
  return parts.reduce((sum, { request }) => sum + (request.gang?.count ?? 1) * request.size.cpus, 0);
}

function before(a: Attempt | undefined, b: Attempt | undefined): number {
  if (!a || !b) return 0;
  return b.request.prio - a.request.prio || a.submitted - b.submitted || a.order - b.order;
}
