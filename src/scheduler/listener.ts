import type { EventEntry } from '../queue/api.ts';

/**
 * Receives every event of the queue, in order, at least once. After a crash the same batch is delivered again, from the
 * same first event.
 */
export interface Listener {
  hear(entries: readonly EventEntry[]): Promise<void>;
}
