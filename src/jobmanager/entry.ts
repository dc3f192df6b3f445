import type { Account, QueueEntry, Verdict } from '../backends/contract.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Report } from '../site/contract.ts';
import type { ExitRecord, Owner } from '../site/exit-record.ts';

/** A line of the site's queue that carries our tag. */
export interface QueueLine {
  /** As the site printed it: that of an array's element whose map is lost is `TAG[INDEX]`. */
  readonly tag: string;
  readonly batchId: string;
  readonly entry: QueueEntry;
  /** When the line first had this state, by the client's clock. */
  readonly since: number;
}

/** Everything known about one attempt at a site: its directory, its lines in the queue, and how certain that is. */
export interface ViewEntry {
  readonly key: AttemptKey;
  /** The highest intended submission; 0: only prepared. */
  submission: number;
  cancelled: boolean;
  batchId: string | undefined;
  /** The failure reported by the submit command. */
  refused: { readonly status: number; readonly message: string } | undefined;
  /** Why we took its lock: nothing of this submission can start. */
  fenced: string | undefined;
  owner: Owner | undefined;
  /** Its wrapper is running and waits for leave to start. */
  asks: Owner | undefined;
  asksSeenAt: number;
  ownerSeenAt: number;
  /** The site has it in its queue again, after it had started. */
  backInQueue: boolean;
  /** The site cannot run it once more: the end of its present run is its end. */
  closed: boolean;
  /** When that was found out to be too late: another run has begun, or begins. */
  takenAt: number | undefined;
  exit: ExitRecord | undefined;
  exitSeenAt: number;
  /** When its directory was last listed. */
  readAt: number;
  /** The site has it in its queue, but its directory there is gone. */
  recordLost: boolean;
  /** A second copy of the submission found the lock and left. */
  second: Owner | undefined;
  /** By submission; copies of one submission by batch id. */
  readonly queue: Map<number, Map<string, QueueLine>>;
  /** Consecutive good answers of the queue that lack its present submission, and the time of the first. */
  looksWithout: number;
  missingSince: number;
  /** How many times the accounting was asked, and its answer: a verdict, or that it knows nothing. */
  asked: number;
  /** Who is ending it, as the queue said while it still ran. */
  ending: Verdict | undefined;
  /** Its time limit in seconds, from the queue. */
  limit: number | undefined;
  account: Account | 'nothing' | undefined;
  report: Report | undefined;
  /** The change number of `report`, counted over the whole view, so that callers can tell what they have seen. */
  changed: number;
}

export function newEntry(key: AttemptKey): ViewEntry {
  return {
    key,
    submission: 0,
    cancelled: false,
    queue: new Map(),
    ownerSeenAt: 0,
    asksSeenAt: 0,
    exitSeenAt: 0,
    readAt: Number.NEGATIVE_INFINITY,
    recordLost: false,
    looksWithout: 0,
    missingSince: 0,
    changed: 0,
    ...nothingKnown(),
  };
}

/** What a new submission starts with. */
export function nothingKnown() {
  return {
    batchId: undefined,
    refused: undefined,
    fenced: undefined,
    owner: undefined,
    asks: undefined,
    report: undefined,
    ...runUnknown(),
  };
}

/** Nor is anything of how a new run ends. */
export function runUnknown() {
  return {
    backInQueue: false,
    closed: false,
    takenAt: undefined,
    exit: undefined,
    second: undefined,
    asked: 0,
    ending: undefined,
    limit: undefined,
    account: undefined,
  };
}

/** The line that counts for the present submission: that of the copy with the lock, otherwise a live one. */
export function presentLine(entry: ViewEntry): QueueLine | undefined {
  const copies = entry.queue.get(entry.submission);
  if (copies === undefined) return undefined;
  const own = entry.owner?.batchId ?? entry.batchId;
  const lines = [...copies.values()];
  return (
    (own === undefined ? undefined : copies.get(own)) ?? lines.find((line) => line.entry.is !== 'ended') ?? lines[0]
  );
}

/** Its lines in the queue that have not ended. */
export function liveLines(entry: ViewEntry): readonly QueueLine[] {
  return [...entry.queue.values()]
    .flatMap((copies) => [...copies.values()])
    .filter((line) => line.entry.is !== 'ended');
}
