import { asError } from '../errors.ts';

export interface ProcessNetOptions {
  readonly onFault: (message: string, error: Error) => void;
  /** Something is wrong that comes again and again: this process is to end in order. */
  readonly end: (error: Error) => void;
  readonly now?: () => number;
}

/** So many faults that nobody could catch, within so long (milliseconds), end the process. */
const MOST = 20;
const WITHIN_MS = 600_000;

/**
 * Errors that nobody could catch, because they came from a callback of a connection, say: said loudly, and the daemon's other
 * work goes on, since what it promised is in the queue and not in its memory. Many of them end it, for a fresh one.
 */
export function spreadNet(options: ProcessNetOptions): void {
  const caught = netOf(options);
  process.on('uncaughtException', caught);
  process.on('unhandledRejection', caught);
}

export function netOf({ onFault, end, now = Date.now }: ProcessNetOptions): (thrown: unknown) => void {
  let times: number[] = [];
  return (thrown) => {
    const error = asError(thrown);
    onFault(`Internal error: ${error.message}`, error);
    const at = now();
    times = [...times.filter((time) => Math.abs(at - time) < WITHIN_MS), at];
    if (times.length >= MOST) end(error);
  };
}
