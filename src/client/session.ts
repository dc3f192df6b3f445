import { readFileSync } from 'node:fs';
import { shellWords } from '../util/shell-quote.ts';

/** The shell text of a job that only keeps what it was given, until its session (`sessionCommand`) has ended; then it has that one's status. */
export function sessionHolder(): string {
  return readFileSync(new URL('session-holder.sh', import.meta.url), 'utf8');
}

/** The shell text that runs a command beside such a job, with its environment and in its directory. */
export function sessionCommand(command: readonly string[]): string {
  const begin = readFileSync(new URL('session-begin.sh', import.meta.url), 'utf8');
  return `${begin}${shellWords(command)}\ngryphus_over $?\n`;
}
