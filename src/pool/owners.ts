import type { PoolOwner } from './client-wire.ts';
import type { Desk } from './desk.ts';

/** Who uses the pool, and who waits for it; whoever would be served first comes first. */
export function ownersOf(desk: Desk): PoolOwner[] {
  const waiting = new Map<string, number>();
  for (const { owner, waiting: count } of desk.kinds.wanted()) waiting.set(owner, (waiting.get(owner) ?? 0) + count);
  const inUse = new Map(desk.priorities.all().map((one) => [one.owner, one.inUse]));
  return desk.priorities.order(new Set([...inUse.keys(), ...waiting.keys()])).map((owner) => ({
    owner,
    priority: desk.priorities.priority(owner),
    inUse: inUse.get(owner) ?? 0,
    waiting: waiting.get(owner) ?? 0,
  }));
}
