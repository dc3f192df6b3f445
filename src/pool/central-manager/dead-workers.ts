import type { Ending } from '../../site/contract.ts';
import type { Attempt } from './attempts.ts';
import type { Collector } from './collector.ts';
import { endedEntry, isKeptByClient } from './central-manager-journal.ts';
import type { CentralManagerPorts } from './central-manager-ports.ts';
import { isOverdue } from './leases.ts';
import type { Priorities } from './priorities.ts';

/** Keeps track of workers that have died and of the attempts lost with them. */
export class DeadWorkers {
  readonly #ports: Pick<CentralManagerPorts, 'journal' | 'clock'>;
  readonly #collector: Collector;
  readonly #priorities: Priorities;
  readonly #tokens = new Set<string>();

  constructor(ports: Pick<CentralManagerPorts, 'journal' | 'clock'>, collector: Collector, priorities: Priorities) {
    this.#ports = ports;
    this.#collector = collector;
    this.#priorities = priorities;
  }

  has(token: string): boolean {
    return this.#tokens.has(token);
  }

  /**
   * Records, as reported by whoever watches them, that the workers admitted with this token have died. Returns the
   * attempts that were running there, which the caller ends.
   */
  declareDead(token: string, attempts: Iterable<Attempt>): Attempt[] {
    this.#tokens.add(token);
    const ran: Attempt[] = [];
    for (const attempt of attempts) {
      if (attempt.token !== token || attempt.phase === 'withdrawn' || attempt.orphan) continue;
      if (attempt.phase !== 'ended') ran.push(attempt);
      else {
        attempt.orphan = true;
        if (!isKeptByClient(attempt.request.spec)) this.#ports.journal.add({ r: 'b', key: attempt.key });
      }
    }
    for (const worker of this.#collector.all()) {
      if (worker.token !== token) continue;
      for (const { kind, size } of worker.claims.values()) this.#priorities.use(kind.owner, -size.cpus);
      this.#collector.remove(worker.instance);
    }
    return ran;
  }

  /** Whether its worker is gone, so that what it left there will never come home. */
  isOrphan(attempt: Attempt): boolean {
    return attempt.orphan === true || isOverdue(attempt, this.#collector, this.#ports.clock());
  }

  /** Its results were lost with its worker, or are worth nothing (`why`), which becomes its ending. */
  bereave(attempt: Attempt, why = 'its worker was lost with the results'): BySite {
    const how = nodeFail(why);
    const ending: Ending = { ...attempt.ending, how };
    attempt.ending = ending;
    if (!isKeptByClient(attempt.request.spec)) this.#ports.journal.add(endedEntry(attempt, ending));
    return how;
  }
}

export const WORKER_DIED = 'its worker died';

type BySite = Extract<Ending['how'], { readonly kind: 'by-site' }>;

export function nodeFail(message: string): BySite {
  return { kind: 'by-site', cause: 'node-fail', message };
}
