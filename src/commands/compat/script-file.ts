import { GryphusError } from '../../errors.ts';
import type { readDescription } from '../../index.ts';
import { shellWords } from '../../util/shell-quote.ts';
import type { Refused } from './options.ts';

/** A script to submit, from a file or, without one, from standard input. `missing`: what the command says if there is none. */
export async function scriptText(
  read: typeof readDescription,
  file: string | undefined,
  missing: Refused,
): Promise<string> {
  try {
    return await read(file ?? '-');
  } catch (error) {
    if (error instanceof GryphusError && error.code === 'input-missing') throw missing;
    throw error;
  }
}

/** A script that runs this command with these arguments. */
export function scriptOfCommand(words: readonly string[]): string {
  return `#!/bin/sh\nexec ${shellWords(words)}\n`;
}
