import type { Queue } from '../queue/api.ts';
import type { Sending } from '../site/contract.ts';

/** What is on its way to a site and from it, in the queue by `<manager>/<site>`; nothing there: nothing is. */
const SENDING = { to: 'sending', from: 'coming' } as const;
export type Way = keyof typeof SENDING;
/** What nobody has spoken of for so long is not on its way any more: its GridManager died. Milliseconds. */
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
  // Only for show: a queue that is away hears of it the next time.
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
