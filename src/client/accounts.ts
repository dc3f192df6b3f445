import type { Paths } from '../config/paths.ts';
import type { PoolOwner, PriorityChange, Reservation } from '../pool/wire/client-wire.ts';
import type { Queue } from '../queue/api.ts';
import { poolOwners, poolReservations, setPoolPriority } from './pool.ts';
import { type UsageBy, type UsageReport, usageOf } from './usage.ts';

/** Owners of jobs: their priorities in the pool, and what their jobs used. */
export class AccountClient {
  readonly #queue: Queue;
  readonly #paths: Paths;

  constructor(queue: Queue, paths: Paths) {
    this.#queue = queue;
    this.#paths = paths;
  }

  /** The owners of the pool's jobs by user priority (the next to be served comes first), after a change, if any. */
  async owners(change?: PriorityChange): Promise<readonly PoolOwner[]> {
    if (change) await setPoolPriority(this.#queue, this.#paths, change);
    return poolOwners(this.#paths);
  }

  /** The machines that are set aside for owners' parallel jobs, after a change, if any. */
  reservations(change?: { readonly make?: Reservation; readonly drop?: string }): Promise<readonly Reservation[]> {
    return poolReservations(this.#queue, this.#paths, change);
  }

  /** What jobs used that ended since this day (UTC; '' for all), and what our daemons spent for it. */
  usage(by: UsageBy = 'owner', since = ''): Promise<UsageReport> {
    return usageOf(this.#paths.stateDir, this.#queue.history, by, since);
  }
}
