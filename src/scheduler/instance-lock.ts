import { DAEMON, type Daemon, SCHEDULER } from '../config/daemon-files.ts';
import { GryphusError } from '../errors.ts';
import type { KvEntry, Queue } from '../queue/api.ts';
import { isAlive } from '../util/process-identity.ts';

/** This process is the Scheduler of the queue, until it says otherwise. */
export interface InstanceLock {
  /** 'already-running' where another one is alive. Of several at once one wins: the entry is replaced only as it was read. */
  claim(): Promise<void>;
  /** Nothing, once another has it. */
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

/** A Scheduler that was killed holds its lease on; only for the one, since whoever is alive has the entry. */
export async function freeLease(queue: Queue): Promise<void> {
  const lease = await queue.acquireLease(SCHEDULER, 1, { force: true });
  if (lease) await queue.releaseLease(lease);
}

function runsAlready(pid: number): GryphusError {
  return new GryphusError('already-running', `A Scheduler runs already on this state directory (process ${pid}).`, {
    suggestions: ['See `gryphus status`; end it with `gryphus down`.'],
  });
}

/** `undefined` where the entry is not one of this program's. */
export function readDaemon({ value }: Pick<KvEntry, 'value'>) {
  try {
    return DAEMON.parse(JSON.parse(value));
  } catch {
    return undefined;
  }
}
