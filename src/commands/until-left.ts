import { ignoresHangUp } from '../util/hang-up.ts';
import { interruptible } from './command.ts';

/** How long the command may take to withdraw its work, in milliseconds. */
const LAST_MS = 5000;
/** The status that a shell gives to a program that was ended by SIGPIPE. */
const NO_READER = 141;

/**
 * For a command whose work ends with it: aborted by Ctrl-C, SIGTERM, a closed terminal, and when its output cannot be
 * written any more. Otherwise what it has begun would go on for nobody. Its exit status tells which.
 */
export function untilLeft(): AbortSignal {
  const stop = interruptible();
  const leave = (status: number) => {
    // The error of the interruption, which follows, has the status of Ctrl-C.
    process.once('exit', () => (process.exitCode = status));
    stop.abort();
    setTimeout(() => process.exit(status), LAST_MS).unref();
  };
  process.removeAllListeners('SIGTERM').once('SIGTERM', () => leave(143));
  if (!ignoresHangUp()) process.removeAllListeners('SIGHUP').once('SIGHUP', () => leave(129));
  process.stdout.removeAllListeners('error').on('error', (error: NodeJS.ErrnoException) => {
    if (stop.signal.aborted) return;
    if (error.code !== 'EPIPE') process.stderr.write(`gryphus: standard output cannot be written: ${error.message}\n`);
    leave(error.code === 'EPIPE' ? NO_READER : 74);
  });
  // With the terminal, standard error has gone too.
  process.stderr.removeAllListeners('error').on('error', () => undefined);
  return stop.signal;
}
