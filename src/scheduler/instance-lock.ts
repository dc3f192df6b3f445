import { DAEMON, type Daemon, SCHEDULER } from '../config/daemon-files.ts';
import { GryphusError } from '../errors.ts';
import type { KvEntry, Queue } from '../queue/api.ts';
import { isAlive } from '../util/process-identity.ts';

/** This process is the queue's only Scheduler until it releases the lock. */
export interface InstanceLock {
  /**
   * Rejects with 'already-running' if another Scheduler is alive. Of several at once one wins: the entry is replaced
   * only if it has not changed since it was read.
   */
  claim(): Promise<void>;
  /** Does nothing if another Scheduler has the lock. */
  giveBack(): Promise<void>;
}

export function instanceLock(queue: Queue, me: Daemon): InstanceLock {
  const mine = JSON.stringify(me);
  return {
    claim: async () => {
      for (;;) {
        const entry = await queue.kv.get('daemon', SCHEDULER);
        const other = entry && readDaemon(entry);
        if (other && isAlive(other)) throw runsAlready(other.pid);
        if ((await queue.kv.set('daemon', SCHEDULER, mine, entry?.version ?? 0)) !== undefined) return;
      }
    },
    giveBack: async () => {
      if ((await queue.kv.get('daemon', SCHEDULER))?.value === mine) await queue.kv.delete('daemon', SCHEDULER);
    },
  };
}

/**
 * Frees the lease that a killed Scheduler left behind. Only for the holder of the lock, which any live Scheduler would
 * have.
 */
export async function freeLease(queue: Queue): Promise<void> {
  const lease = await queue.acquireLease(SCHEDULER, 1, { force: true });
  if (lease) await queue.releaseLease(lease);
}

function runsAlready(pid: number): GryphusError {
  return new GryphusError('already-running', `A Scheduler runs already on this state directory (process ${pid}).`, {
    suggestions: ['See `gryphus status`; end it with `gryphus down`.'],
  });
}

/** `undefined` if the entry is not in this program's format. */
export function readDaemon({ value }: Pick<KvEntry, 'value'>) {
  try {
    return DAEMON.parse(JSON.parse(value));
  } catch {
    return undefined;
  }
}
