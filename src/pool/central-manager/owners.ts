import type { PoolOwner } from '../wire/client-wire.ts';
import type { CentralManager } from './central-manager.ts';

/** The owners who use the pool or have jobs waiting, in the order in which they would be served next. */
export function ownersOf({ autoclusters, priorities }: CentralManager): PoolOwner[] {
  const waiting = new Map<string, number>();
  for (const { owner, waiting: count } of autoclusters.wanted()) waiting.set(owner, (waiting.get(owner) ?? 0) + count);
  for (const owner of waiting.keys()) priorities.priority(owner);
  const accounts = new Map(priorities.all().map((one) => [one.owner, one]));
  return priorities.order(accounts.keys()).flatMap((owner) => {
    const account = accounts.get(owner);
    if (!account) return [];
    const { inUse, priority: realPriority, index = 0, usage = 0, begin = 0, last = 0 } = account;
    const computed = { priority: priorities.priority(owner), realPriority, index, factor: priorities.factor(owner) };
    return [{ owner, ...computed, inUse, usedHours: usage / 3600, begin, last, waiting: waiting.get(owner) ?? 0 }];
  });
}
