import type { Json } from '../job/events.ts';

export interface WorkOptions {
  readonly delayMs?: number;
  /** Maximum number of attempts; default 1. */
  readonly attempts?: number;
  /** Delay before the next attempt, doubled each time, milliseconds; default 1000. */
  readonly backoffMs?: number;
}

export interface WorkItem {
  readonly kind: string;
  readonly id: string;
  readonly data: Json;
  /** 1 at the first attempt. */
  readonly attempt: number;
}

/** What the handler wants next: nothing, or the same item again later. */
export type WorkDone = { readonly againInMs: number } | undefined;
/** Must be idempotent: work is delivered at least once. */
export type WorkHandler = (item: WorkItem) => Promise<WorkDone>;

export interface WorkerOptions {
  readonly concurrency?: number;
  /**
   * This is the queue's only worker, and its items are rebuilt afterwards: items left by an earlier worker are dropped.
   * Without this, an item that a killed worker had begun is delivered again after about ten seconds.
   */
  readonly fresh?: boolean;
  /** Called when an item has failed for the last time. */
  readonly onFailed?: (item: WorkItem, error: Error) => void;
}

/** Items that one process adds and runs. */
export interface Work {
  /** Does nothing if the same kind and id is already waiting; if it is running, it runs once more afterwards. */
  add(kind: string, id: string, data: Json, options?: WorkOptions): Promise<void>;
  /** Like `add` without a delay; a delayed item runs now. */
  wake(kind: string, id: string, data: Json, options?: WorkOptions): Promise<void>;
  remove(kind: string, id: string): Promise<void>;
  /** Starts a worker of this queue in this process. */
  run(handlers: Readonly<Record<string, WorkHandler>>, options?: WorkerOptions): Promise<WorkRunner>;
  close(): Promise<void>;
}

export interface WorkRunner {
  /** Waits for the items that are running. */
  close(): Promise<void>;
}
