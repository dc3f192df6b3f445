import { asError } from '../../errors.ts';

/** With less free space than this, in KB, a worker starts nothing, since it also needs space for its own records. */
export const LEAST_KB = 1024;
export const FREE_DISK = 'FreeDiskKb';

/** Whether an error, or one of its causes, is a full disk or an exceeded quota. */
export function isFull(thrown: unknown): boolean {
  for (let error: unknown = thrown; error instanceof Error; error = error.cause)
    if (/^(ENOSPC|EDQUOT)\b/.test(error.message)) return true;
  return false;
}

export function diskFullMessage(thrown: unknown): string {
  return isFull(thrown) ? NO_SPACE : asError(thrown).message;
}

export const NO_SPACE = 'the disk of its worker is full';
