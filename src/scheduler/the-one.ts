import { DAEMON, SCHEDULER } from '../config/daemon-files.ts';
import { GryphusError } from '../errors.ts';
import type { KvEntry, Queue } from '../queue/api.ts';
import { isAlive, processIdentity } from '../util/process-identity.ts';

/**
 * Makes this process the Scheduler of the queue; 'already-running' where another one is alive. Of several that start at
 * once one wins, since the entry is replaced only as it was read. Answers what gives it back: nothing, once another has it.
 */
export async function becomeTheOne(queue: Queue, since: number): Promise<() => Promise<void>> {
  const mine = JSON.stringify({ ...processIdentity(), since });
  for (;;) {
    const entry = await queue.kv.get('daemon', SCHEDULER);
    const other = entry && readDaemon(entry);
    if (other && isAlive(other)) {
      throw new GryphusError(
        'already-running',
        `A Scheduler runs already on this state directory (process ${other.pid}).`,
        { suggestions: ['See `gryphus status`; end it with `gryphus down`.'] },
      );
    }
    if ((await queue.kv.set('daemon', SCHEDULER, mine, entry?.version ?? 0)) !== undefined) break;
  }
  // A Scheduler that was killed holds its lease on; whoever is alive would have its entry.
  const lease = await queue.acquireLease(SCHEDULER, 1, { force: true });
  if (lease) await queue.releaseLease(lease);
  return async () => {
    if ((await queue.kv.get('daemon', SCHEDULER))?.value === mine) await queue.kv.delete('daemon', SCHEDULER);
  };
}

/** `undefined` where the entry is not one of this program's. */
export function readDaemon({ value }: Pick<KvEntry, 'value'>) {
  try {
    return DAEMON.parse(JSON.parse(value));
  } catch {
    return undefined;
  }
}
