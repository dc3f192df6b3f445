import type { Queue } from './api.ts';
import { STAY } from './tables.ts';

/** A connection that a user logged in to is kept this long without work, milliseconds. */
export const LOGIN_KEPT_MS = 8 * 3_600_000;

/** Keeps this manager alive, with or without jobs, at least until then (Unix milliseconds). */
export async function stayUntil(queue: Queue, identity: string, until: number): Promise<void> {
  const known = (await STAY.get(queue.kv, identity)) ?? 0;
  if (known < until || known > until + LOGIN_KEPT_MS) await STAY.set(queue.kv, identity, until);
}

/** The managers to keep alive without work; expired entries are deleted. */
export async function staying(queue: Queue, now: number): Promise<ReadonlySet<string>> {
  const wanted = new Set<string>();
  for (const { key, value } of await STAY.list(queue.kv)) {
    const left = value - now;
    // Bounded, so that a clock that was set back does not keep a process for days.
    if (left > 0 && left <= LOGIN_KEPT_MS) wanted.add(key);
    else await STAY.delete(queue.kv, key);
  }
  return wanted;
}
