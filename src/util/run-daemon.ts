import { asError, GryphusError } from '../errors.ts';

/**
 * Runs a daemon's main function and ends the process with it: status 0, or that of its error, whose text is printed.
 * `told`: the text, if it is not the error's message alone.
 */
export function runDaemon(
  main: Promise<void>,
  told: (thrown: unknown) => string = (one) => asError(one).message,
): void {
  main.then(
    () => process.exit(0),
    (thrown: unknown) => {
      process.stderr.write(`${told(thrown)}\n`);
      process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
    },
  );
}

/** Whoever started us may exit: writing to its closed pipes must not end us. */
export function outliveReader(): void {
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
}
