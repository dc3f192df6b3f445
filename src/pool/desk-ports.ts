import type { Report } from '../site/contract.ts';
import type { Attempt } from './attempts.ts';
import type { DeskEntry } from './desk-journal.ts';
import type { FromDesk } from './wire.ts';

/** What the desk does to the world. All of it happens in order, after what it promises is on disk. */
export interface DeskPorts {
  readonly journal: { add(entry: DeskEntry): void; whenSaved(call: () => void): void };
  readonly toWorker: (worker: string, message: FromDesk) => void;
  /** Its client hears what became of it. */
  readonly toClient: (client: string, report: Report, attempt: Attempt) => void;
  /** Unix milliseconds, for people: whoever sets the clock moves it. */
  readonly now: () => number;
  /** Milliseconds since whenever, which nobody can set: leases are counted by it. */
  readonly clock: () => number;
  readonly log: (words: string, facts?: object) => void;
}
