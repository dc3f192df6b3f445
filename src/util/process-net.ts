import { asError } from '../errors.ts';

export interface ProcessNetOptions {
  readonly onFault: (message: string, error: Error) => void;
  /** Called when errors keep occurring, to end this process in an orderly way. */
  readonly end: (error: Error) => void;
  readonly now?: () => number;
}

/** How many uncaught errors within how many milliseconds end the process. */
const MOST = 20;
const WITHIN_MS = 600_000;

/**
 * Handles errors that no code could catch, for example because they came from a connection's callback. They are logged
 * as errors and the daemon continues its other work, since its promises are in the queue and not in its memory. Too
 * many of them end it, so that a new process replaces it.
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
