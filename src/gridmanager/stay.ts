import type { Queue } from '../queue/api.ts';

const STAY = 'stay';
/** A connection that a person logged in to is kept for so long without work, milliseconds. */
export const LOGIN_KEPT_MS = 8 * 3_600_000;

/** This manager is wanted until then (Unix milliseconds), or longer if that was said before, whether it has jobs or not. */
export async function stayUntil(queue: Queue, identity: string, until: number): Promise<void> {
  const known = Number((await queue.kv.get(STAY, identity))?.value ?? 0);
  if (known < until || known > until + LOGIN_KEPT_MS) await queue.kv.set(STAY, identity, String(until));
}

/** The managers that are wanted without work; those whose time is over are forgotten. */
export async function staying(queue: Queue, now: number): Promise<ReadonlySet<string>> {
  const wanted = new Set<string>();
  for (const { key, value } of await queue.kv.list(STAY)) {
    const left = Number(value) - now;
    // A clock that was set back must not keep a process for days.
    if (left > 0 && left <= LOGIN_KEPT_MS) wanted.add(key);
    else await queue.kv.delete(STAY, key);
  }
  return wanted;
}
