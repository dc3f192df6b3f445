import { join } from 'node:path';
import type { Paths } from '../../config/paths.ts';

/** Where the pool's things are; all in 0700 directories of the agent's state. */
export interface PoolPlaces {
  readonly dir: string;
  readonly journal: string;
  /** Who runs the central manager. */
  readonly pid: string;
  /** The socket for the agent's own processes: whoever can open it is the agent's owner. */
  readonly clientSocket: string;
  /** The socket for the workers of this machine; they, too, have to show a token. */
  readonly workerSocket: string;
  /**
   * The socket for workers of elsewhere: a reverse connection is whoever opens it once for each worker that dials and relays the
   * bytes to and fro. They are TLS with the worker's token as key (src/reverse-connection/secure.ts), and mean nothing to the way.
   */
  readonly homeSocket: string;
  /** The worker of this machine. */
  readonly workerDir: string;
  /** Delegated to the pool, for its jobs. */
  readonly proxies: string;
}

export function poolPlaces(paths: Pick<Paths, 'stateDir' | 'socketDir'>): PoolPlaces {
  const dir = join(paths.stateDir, 'pool');
  return {
    dir,
    journal: join(dir, 'journal'),
    pid: join(dir, 'central-manager.pid'),
    clientSocket: join(paths.socketDir, 'pool.sock'),
    workerSocket: join(paths.socketDir, 'pool-workers.sock'),
    homeSocket: join(paths.socketDir, 'pool-home.sock'),
    workerDir: join(dir, 'worker'),
    proxies: join(dir, 'proxies'),
  };
}
