import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../../errors.ts';
import { writeWhole } from '../../util/private-file.ts';
import { isAlive, processIdentity } from '../../util/process-identity.ts';
import { holderOf } from './pid-files.ts';
import { signal } from './processes.ts';

/**
 * Ensures one process for the file, this one: asks the one that holds it to end, then kills it. The caller holds the
 * Scheduler's lease, which gives it the right to. `what` names it: 'central manager'. Rejects with 'already-running' if
 * it does not stop.
 */
export async function takeOver(file: string, what: string): Promise<void> {
  const other = holderOf(file);
  if (other && other.pid !== process.pid) {
    for (let turn = 0; isAlive(other); turn++) {
      if (turn === 0) signal(other.pid, 'SIGTERM');
      if (turn === 100) signal(other.pid, 'SIGKILL');
      if (turn > 600) throw new GryphusError('already-running', `The ${what} (process ${other.pid}) does not stop.`);
      await sleep(20);
    }
  }
  writeWhole(file, JSON.stringify(processIdentity()));
}
