/** The name of Node's warnings from here. */
export const WARNING = 'GryphusWarning';

/**
 * Tells the user something that is no error: programs get it as a warning of Node (`process.on('warning')`), the command line
 * writes it to its standard error, the Scheduler to its log.
 */
export function warn(message: string): void {
  process.emitWarning(message, WARNING);
}
