import { asError } from '../../errors.ts';

/** With less than this a worker begins nothing: what it writes down of its runs has to find room, too. KB. */
export const LEAST_KB = 1024;
export const FREE_DISK = 'FreeDiskKb';

/** The disk, or what its owner may use of it, is full; also where that is the cause of something else. */
export function isFull(thrown: unknown): boolean {
  for (let error: unknown = thrown; error instanceof Error; error = error.cause)
    if (/^(ENOSPC|EDQUOT)\b/.test(error.message)) return true;
  return false;
}

export function fullWords(thrown: unknown): string {
  return isFull(thrown) ? NO_SPACE : asError(thrown).message;
}

export const NO_SPACE = 'the disk of its worker is full';
