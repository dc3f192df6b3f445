import type { Json } from '../job/events.ts';

export interface WorkOptions {
  readonly delayMs?: number;
  /** How often it is tried in all; default 1. */
  readonly attempts?: number;
  /** Between tries, doubled each time, in milliseconds; default 1000. */
  readonly backoffMs?: number;
}

export interface WorkItem {
  readonly kind: string;
  readonly id: string;
  readonly data: Json;
  /** 1 at the first try. */
  readonly attempt: number;
}

/** What a handler wants next: nothing, or the same item again later. */
export type WorkDone = { readonly againInMs: number } | undefined;
/** Must be safe to run twice: work is delivered at least once. */
export type WorkHandler = (item: WorkItem) => Promise<WorkDone>;

export interface WorkerOptions {
  readonly concurrency?: number;
  readonly rate?: { readonly max: number; readonly perMs: number };
  /**
   * This is the queue's only worker and its items are rebuilt after: what an earlier one left is dropped. Without it, an
   * item that a killed worker had begun is given out again after about ten seconds.
   */
  readonly fresh?: boolean;
  /** An item failed for the last time. */
  readonly onFailed?: (item: WorkItem, error: Error) => void;
}

export interface Work {
  /** Nothing happens where the same kind and id waits already; where it runs now, it runs once more after. */
  add(kind: string, id: string, data: Json, options?: WorkOptions): Promise<void>;
  /** As `add` without delay, and an item that waits for its time runs now. */
  wake(kind: string, id: string, data: Json, options?: WorkOptions): Promise<void>;
  remove(kind: string, id: string): Promise<void>;
  /** One worker of this queue in this process. */
  run(handlers: Readonly<Record<string, WorkHandler>>, options?: WorkerOptions): Promise<Worker>;
  close(): Promise<void>;
}

export interface Worker {
  /** Lets what runs now end. */
  close(): Promise<void>;
}
