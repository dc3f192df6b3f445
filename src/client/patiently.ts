import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';

/** Between two tries, in milliseconds. */
const AGAIN_MS = 200;

/** Does `work`, however long the queue is down; `undefined` if the signal came first. */
export async function patiently<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await work();
    } catch (thrown) {
      if (signal.aborted) return undefined;
      if (!(thrown instanceof GryphusError && thrown.code === 'queue-unavailable')) throw thrown;
      await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}
