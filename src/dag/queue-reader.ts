import { setTimeout as sleep } from 'node:timers/promises';
import { parseJobId } from '../job/ids.ts';
import { GryphusError } from '../errors.ts';
import type { DagStream, DagEntry } from '../queue/api.ts';
import { jobChangesOf, saysProvisioned } from './job-changes.ts';
import type { Happening, Told } from './manager/world.ts';

/** How long one call waits at the queue for something to happen, milliseconds. */
const BLOCK_MS = 5000;
/** A queue that is away is asked again after so long, milliseconds. */
const AGAIN_MS = 250;

/** Does `work` until the queue is there for it, or the signal says that nobody waits any more. */
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

/** Reads on behind `cursor` until the signal says so; gives what came together in one call. */
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
  if (event.type === 'told') return [{ is: 'told', event: event.what as Told, cursor }];
  if (event.type === 'edited') return saysProvisioned(event) ? [{ is: 'provisioned', cursor }] : [];
  const job = event.type === 'transition' ? parseJobId(event.job) : undefined;
  if (event.type !== 'transition' || job === undefined) return [];
  return jobChangesOf(event).map((change) => ({ is: 'job', ...job, change, cursor }));
}
