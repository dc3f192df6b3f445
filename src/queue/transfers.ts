import type { Queue } from './api.ts';
import { TRANSFERS_OF } from './tables.ts';
import type { Sending } from '../site/contract.ts';

export type TransferWay = keyof typeof TRANSFERS_OF;
/** An entry not updated for this long is stale, because its GridManager died. Milliseconds. */
const STALE_MS = 60_000;

export async function tellSending(
  queue: Pick<Queue, 'kv'>,
  way: TransferWay,
  place: string,
  all: readonly Sending[],
): Promise<void> {
  const table = TRANSFERS_OF[way];
  // Only for display: if the queue is unavailable, the next update replaces this one.
  const saved = all.length === 0 ? table.delete(queue.kv, place) : table.set(queue.kv, place, { at: Date.now(), all });
  await saved.catch(() => undefined);
}

export async function sendingOf(
  queue: Pick<Queue, 'kv'>,
  way: TransferWay,
  place: string,
): Promise<readonly Sending[]> {
  const published = await TRANSFERS_OF[way].get(queue.kv, place);
  return published && Math.abs(Date.now() - published.at) < STALE_MS ? published.all : [];
}
