import type { Queue } from '../queue/api.ts';
import type { Sending } from '../site/contract.ts';

/** Transfers to and from a site, in the queue by `<manager>/<site>`; no entry: nothing is being transferred. */
const SENDING = { to: 'sending', from: 'coming' } as const;
export type Way = keyof typeof SENDING;
/** An entry not updated for this long is stale, because its GridManager died. Milliseconds. */
const STALE_MS = 60_000;

interface Told {
  /** Unix milliseconds. */
  readonly at: number;
  readonly all: readonly Sending[];
}

export async function tellSending(
  queue: Pick<Queue, 'kv'>,
  way: Way,
  place: string,
  all: readonly Sending[],
): Promise<void> {
  const told: Told = { at: Date.now(), all };
  const kind = SENDING[way];
  // Only for display: if the queue is unavailable, the next update replaces this one.
  await (all.length === 0 ? queue.kv.delete(kind, place) : queue.kv.set(kind, place, JSON.stringify(told))).catch(
    () => undefined,
  );
}

export async function sendingOf(queue: Pick<Queue, 'kv'>, way: Way, place: string): Promise<readonly Sending[]> {
  const entry = await queue.kv.get(SENDING[way], place);
  if (!entry) return [];
  const { at, all } = JSON.parse(entry.value) as Told;
  return Math.abs(Date.now() - at) < STALE_MS ? all : [];
}
