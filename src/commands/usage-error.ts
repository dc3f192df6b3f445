import { Errors } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';

/** What oclif has against the words, in our own; with the flag that was likely meant. */
export function usageError(error: Errors.CLIError, flags: readonly string[]): GryphusError {
  const odd = 'flags' in error && Array.isArray(error.flags) ? String(error.flags[0]) : '';
  const near = didYouMean(odd.replace(/^-+/, ''), flags);
  return new GryphusError('usage', `${wordsOf(error)}.`, {
    suggestions: [...(near ? [`Did you mean --${near}?`] : []), 'See the command with --help.'],
  });
}

interface MissingArg {
  readonly name: string;
  readonly description?: string;
}

function wordsOf(error: Errors.CLIError): string {
  if (/^Missing \d+ required arg/.test(error.message) && 'args' in error && Array.isArray(error.args)) {
    const args = error.args as readonly MissingArg[];
    return args
      .map(({ name, description = '' }) => `${name.toUpperCase()} is missing: ${description.replace(/\.$/, '')}`)
      .join('; ');
  }
  const lines = error.message
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(See more help|The following errors? occurred:)/.test(line));
  return lines
    .join('; ')
    .replaceAll(/Parsing (--[\w-]+) ?; ?Expected/g, '$1: expected')
    .replaceAll(/Missing required flag (?=\w)/g, 'Missing required flag --');
}
