import type { Queue } from '../queue/api.ts';
import type { Sending } from '../site/contract.ts';

/** What is on its way to a site, in the queue by `<manager>/<site>`; nothing there: nothing is. */
const SENDING = 'sending';
/** What nobody has spoken of for so long is not on its way any more: its GridManager died. Milliseconds. */
const STALE_MS = 60_000;

interface Told {
  /** Unix milliseconds. */
  readonly at: number;
  readonly all: readonly Sending[];
}

export async function tellSending(queue: Pick<Queue, 'kv'>, place: string, all: readonly Sending[]): Promise<void> {
  const told: Told = { at: Date.now(), all };
  // Only for show: a queue that is away hears of it the next time.
  await (all.length === 0 ? queue.kv.delete(SENDING, place) : queue.kv.set(SENDING, place, JSON.stringify(told))).catch(
    () => undefined,
  );
}

export async function sendingTo(queue: Pick<Queue, 'kv'>, place: string): Promise<readonly Sending[]> {
  const entry = await queue.kv.get(SENDING, place);
  if (!entry) return [];
  const { at, all } = JSON.parse(entry.value) as Told;
  return Math.abs(Date.now() - at) < STALE_MS ? all : [];
}
