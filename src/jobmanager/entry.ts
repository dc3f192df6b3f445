import type { Account, QueueEntry, Verdict } from '../backends/contract.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Report } from '../site/contract.ts';
import type { ExitRecord, Owner } from './exit-record.ts';

/** One line of the site's queue that carries our tag. */
export interface QueueLine {
  readonly batchId: string;
  readonly entry: QueueEntry;
  /** Client's clock when it was first like this. */
  readonly since: number;
}

/** All that is known of one attempt at a site: its directory, its lines in the queue, and how sure we are. */
export interface Entry {
  readonly key: AttemptKey;
  /** The highest submission that was meant; 0: prepared only. */
  submission: number;
  cancelled: boolean;
  batchId: string | undefined;
  /** The submit command's failure, as it said it. */
  refused: { readonly status: number; readonly message: string } | undefined;
  /** Why its lock was taken by us: nothing of this submission can start. */
  fenced: string | undefined;
  owner: Owner | undefined;
  /** Its wrapper is there, and waits for leave to start. */
  asks: Owner | undefined;
  asksSeenAt: number;
  ownerSeenAt: number;
  exit: ExitRecord | undefined;
  exitSeenAt: number;
  /** When its directory was listed last. */
  readAt: number;
  /** A second copy of the submission came, found the lock and left. */
  second: Owner | undefined;
  /** By submission; copies of one submission by batch id. */
  readonly queue: Map<number, Map<string, QueueLine>>;
  /** Good answers of the queue without its present submission, in a row, and the first of them. */
  looksWithout: number;
  missingSince: number;
  /** How often the accounting was asked, and what it said: a verdict, or that it knows nothing. */
  asked: number;
  /** What the queue said of who ends it, while it still ran. */
  ending: Verdict | undefined;
  /** And how many seconds it may run. */
  limit: number | undefined;
  account: Account | 'nothing' | undefined;
  report: Report | undefined;
  /** Grows over the whole view: the change of `report` that the caller has or has not seen. */
  changed: number;
}

export function newEntry(key: AttemptKey): Entry {
  return {
    key,
    submission: 0,
    cancelled: false,
    queue: new Map(),
    ownerSeenAt: 0,
    asksSeenAt: 0,
    exitSeenAt: 0,
    readAt: Number.NEGATIVE_INFINITY,
    looksWithout: 0,
    missingSince: 0,
    changed: 0,
    ...nothingKnown(),
  };
}

/** A new submission starts with nothing known. */
export function nothingKnown() {
  return {
    batchId: undefined,
    refused: undefined,
    fenced: undefined,
    owner: undefined,
    asks: undefined,
    exit: undefined,
    second: undefined,
    asked: 0,
    ending: undefined,
    limit: undefined,
    account: undefined,
    report: undefined,
  };
}

/** The line that counts for the present submission: the copy that has the lock, else one that lives. */
export function presentLine(entry: Entry): QueueLine | undefined {
  const copies = entry.queue.get(entry.submission);
  if (copies === undefined) return undefined;
  const own = entry.owner?.batchId ?? entry.batchId;
  const lines = [...copies.values()];
  return (
    (own === undefined ? undefined : copies.get(own)) ?? lines.find((line) => line.entry.is !== 'ended') ?? lines[0]
  );
}
