import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Paths } from '../../config/paths.ts';

/** The paths of the pool's files, all in 0700 directories of the agent's state. */
export interface PoolPlaces {
  readonly dir: string;
  readonly journal: string;
  /** Exists from the restoring of a backup to the next start of the central manager: the journal is the backup's. */
  readonly restored: string;
  /** Identifies the central manager's process. */
  readonly pid: string;
  /** The socket for the agent's own processes; only the agent's owner can open it. */
  readonly clientSocket: string;
  /** The socket for workers on this machine, which must also present a token. */
  readonly workerSocket: string;
  /**
   * The socket for workers elsewhere. A reverse connection opens it once for each worker that dials, and relays the
   * bytes. These are TLS with the worker's token as the key (src/reverse-connection/secure.ts), so the relay cannot
   * read them.
   */
  readonly homeSocket: string;
  /** The directory of this machine's worker. */
  readonly workerDir: string;
  /** Proxies delegated to the pool for its jobs. */
  readonly proxies: string;
}

/** Why the central manager behind this socket for clients ended; there is no such file while it runs. */
export function failureFile(clientSocket: string): string {
  return `${clientSocket}.failure`;
}

/** Why the central manager behind this socket ended, if it said so. */
export function failureOf(socket: string): string | undefined {
  try {
    return readFileSync(failureFile(socket), 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}

export function poolPlaces(paths: Pick<Paths, 'stateDir' | 'socketDir'>): PoolPlaces {
  const dir = join(paths.stateDir, 'pool');
  return {
    dir,
    journal: join(dir, 'journal'),
    restored: join(dir, 'restored'),
    pid: join(dir, 'central-manager.pid'),
    clientSocket: join(paths.socketDir, 'pool.sock'),
    workerSocket: join(paths.socketDir, 'pool-workers.sock'),
    homeSocket: join(paths.socketDir, 'pool-home.sock'),
    workerDir: join(dir, 'worker'),
    proxies: join(dir, 'proxies'),
  };
}
