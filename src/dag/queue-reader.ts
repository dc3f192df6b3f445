import { setTimeout as sleep } from 'node:timers/promises';
import { parseJobId } from '../job/ids.ts';
import { GryphusError } from '../errors.ts';
import type { DagStream, DagEntry } from '../queue/api.ts';
import { jobChangesOf, saysProvisioned } from './job-changes.ts';
import { TOLD } from './engine/messages.ts';
import type { Happening } from './manager/world.ts';

/** How long one call blocks waiting for something to happen, in milliseconds. */
const BLOCK_MS = 5000;
/** How long to wait before retrying an unavailable queue, in milliseconds. */
const AGAIN_MS = 250;

/** Repeats `work` until the queue is available, or until the signal says that the result is no longer wanted. */
export async function patiently<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (signal?.aborted || !(thrown instanceof GryphusError && thrown.retry === 'later')) throw thrown;
      await sleep(AGAIN_MS);
    }
  }
}

/** Follows the stream after `cursor` until the signal aborts; passes on what arrived together in one call. */
export async function followDag(
  dagStream: DagStream,
  cursor: string | undefined,
  take: (happenings: readonly Happening[]) => void,
  signal: AbortSignal,
): Promise<void> {
  let at = cursor ?? '0';
  while (!signal.aborted) {
    const entries = await patiently(() => dagStream.read(at, { blockMs: BLOCK_MS }, signal), signal).catch(
      (thrown: unknown) => {
        if (signal.aborted) return [];
        throw thrown;
      },
    );
    at = entries.at(-1)?.id ?? at;
    take(entries.flatMap(happeningsOf));
  }
}

function happeningsOf({ id: cursor, event }: DagEntry): readonly Happening[] {
  if (event.type === 'told') {
    const told = TOLD.safeParse(event.what).data;
    return told === undefined ? [] : [{ is: 'told', event: told, cursor }];
  }
  if (event.type === 'edited') return saysProvisioned(event) ? [{ is: 'provisioned', cursor }] : [];
  const job = event.type === 'transition' ? parseJobId(event.job) : undefined;
  if (event.type !== 'transition' || job === undefined) return [];
  return jobChangesOf(event).map((change) => ({ is: 'job', ...job, change, cursor }));
}
