import type { Report } from '../../site/contract.ts';
import type { Attempt } from './attempts.ts';
import type { CentralManagerEntry } from './central-manager-journal.ts';
import type { FromCentralManager } from '../wire/wire.ts';

/** What the central manager does to the world. All of it happens in order, after what it promises is on disk. */
export interface CentralManagerPorts {
  readonly journal: { add(entry: CentralManagerEntry): void; whenSaved(call: () => void): void };
  readonly toWorker: (worker: string, message: FromCentralManager) => void;
  /** Its client hears what became of it. */
  readonly toClient: (client: string, report: Report, attempt: Attempt) => void;
  /** Unix milliseconds, for people: whoever sets the clock moves it. */
  readonly now: () => number;
  /** Milliseconds since whenever, which nobody can set: leases are counted by it. */
  readonly clock: () => number;
  readonly log: (message: string, facts?: object) => void;
}
