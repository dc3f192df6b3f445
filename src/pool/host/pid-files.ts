import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, PROCESS_IDENTITY, type ProcessIdentity } from '../../util/process-identity.ts';
import type { PoolPlaces } from './places.ts';

/** The process that wrote the file, whether or not it is still alive. */
export function holderOf(file: string): ProcessIdentity | undefined {
  try {
    return PROCESS_IDENTITY.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** The live central manager of this state directory. */
export function centralManagerOf({ pid }: Pick<PoolPlaces, 'pid'>): ProcessIdentity | undefined {
  return living(pid);
}

/** The live worker that holds the directory. */
export function workerOf(dir: string): ProcessIdentity | undefined {
  return living(workerFile(dir));
}

export function workerFile(dir: string): string {
  return join(dir, 'worker.pid');
}

function living(file: string): ProcessIdentity | undefined {
  const found = holderOf(file);
  return found && isAlive(found) ? found : undefined;
}
