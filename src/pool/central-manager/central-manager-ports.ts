import type { Report } from '../../site/contract.ts';
import type { Attempt } from './attempts.ts';
import type { CentralManagerEntry } from './central-manager-journal.ts';
import type { FromCentralManager } from '../wire/wire.ts';

/** The central manager's side effects. All are performed in order, after the promises they depend on are on disk. */
export interface CentralManagerPorts {
  readonly journal: { add(entry: CentralManagerEntry): void; whenSaved(call: () => void): void };
  readonly toWorker: (worker: string, message: FromCentralManager) => void;
  /** Reports an attempt's new state to its client. */
  readonly toClient: (client: string, report: Report, attempt: Attempt) => void;
  /** Unix milliseconds, for display: setting the system clock changes it. */
  readonly now: () => number;
  /** Monotonic milliseconds, which setting the clock does not change; used for leases. */
  readonly clock: () => number;
  readonly log: (message: string, facts?: object) => void;
}
