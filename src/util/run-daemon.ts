import { asError, GryphusError } from '../errors.ts';
import { followTimeZone } from './time-zone.ts';

/**
 * Runs a daemon's main function and ends the process with it: status 0, or that of its error, whose text is printed.
 * `told`: the text, if it is not the error's message alone.
 */
export function runDaemon(
  main: Promise<void>,
  told: (thrown: unknown) => string = (one) => asError(one).message,
): void {
  followTimeZone();
  main.then(
    () => process.exit(0),
    (thrown: unknown) => {
      process.stderr.write(`${told(thrown)}\n`);
      process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
    },
  );
}

/** The most time that a daemon that was told to end has for it, in milliseconds. */
const END_MS = 4500;

/**
 * Calls `end` when the process is told to end by a signal. If it is still there after 4.5 s, it exits as it is: what it has not recorded is
 * done again by its successor, as after a crash. `late` then gets the kinds of what it still waited for.
 */
export function endOnSignal(end: () => void, late: (open: readonly string[]) => void = () => undefined): void {
  let told = false;
  const asked = (): void => {
    // At a shutdown both the system and the process that started this one tell it.
    if (told) return;
    told = true;
    setTimeout(() => {
      late(process.getActiveResourcesInfo());
      process.exit(0);
    }, END_MS).unref();
    end();
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, asked);
}

/** Whoever started us may exit: writing to its closed pipes must not end us. */
export function outliveReader(): void {
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
}
