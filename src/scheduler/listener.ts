import type { EventEntry } from '../queue/api.ts';

/** Hears every event of the queue, in order, at least once: the same batch again after a crash, from the same first event. */
export interface Listener {
  hear(entries: readonly EventEntry[]): Promise<void>;
}
