import type { PoolOwner } from '../wire/client-wire.ts';
import type { CentralManager } from './central-manager.ts';

/** The owners who use the pool or have jobs waiting, in the order in which they would be served next. */
export function ownersOf(centralManager: CentralManager): PoolOwner[] {
  const waiting = new Map<string, number>();
  for (const { owner, waiting: count } of centralManager.autoclusters.wanted())
    waiting.set(owner, (waiting.get(owner) ?? 0) + count);
  const inUse = new Map(centralManager.priorities.all().map((one) => [one.owner, one.inUse]));
  return centralManager.priorities.order(new Set([...inUse.keys(), ...waiting.keys()])).map((owner) => ({
    owner,
    priority: centralManager.priorities.priority(owner),
    inUse: inUse.get(owner) ?? 0,
    waiting: waiting.get(owner) ?? 0,
  }));
}
