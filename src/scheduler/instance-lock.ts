import { GryphusError } from '../errors.ts';
import type { Queue } from '../queue/api.ts';
import { DAEMONS } from '../queue/tables.ts';
import { type Daemon, SCHEDULER } from '../util/daemon.ts';
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
  return {
    claim: async () => {
      for (;;) {
        const { value: other, version } = await DAEMONS.versioned(queue.kv, SCHEDULER);
        if (other && isAlive(other)) throw runsAlready(other.pid);
        if (await DAEMONS.set(queue.kv, SCHEDULER, me, version)) return;
      }
    },
    giveBack: async () => {
      const holder = await DAEMONS.get(queue.kv, SCHEDULER);
      if (holder?.pid === me.pid && holder.started === me.started) await DAEMONS.delete(queue.kv, SCHEDULER);
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
  return new GryphusError(
    'already-running',
    `A Scheduler is already running on this state directory (process ${pid}).`,
    {
      suggestions: ['See `gryphus status`; stop it with `gryphus down`.'],
    },
  );
}
