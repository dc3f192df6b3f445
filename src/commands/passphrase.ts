import { readFileSync } from 'node:fs';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { reasonOf } from '../util/plain-text.ts';

export const PASSPHRASE_FLAGS = {
  'passphrase-file': Flags.string({ helpValue: '<file>', summary: 'A file whose first line is the passphrase.' }),
};

/** The first line of the file. Throws a GryphusError 'usage' if there is none. */
export function passphraseIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new GryphusError('usage', `The passphrase file ${file} cannot be read: ${reasonOf(cause)}.`, { cause });
  }
  const [line = ''] = text.split('\n');
  if (line === '') throw new GryphusError('usage', `The first line of the passphrase file ${file} is empty.`);
  return line;
}
