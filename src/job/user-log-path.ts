import { resolve } from 'node:path';
import { readString, type TextSource } from './values.ts';

/** Where the job's user log is, absolute; `undefined` where it keeps none. */
export function userLogPath(attrs: TextSource): string | undefined {
  const path = readString(attrs, 'UserLog');
  if (path === undefined || path === '' || path === '/dev/null') return undefined;
  return resolve(readString(attrs, 'Iwd') ?? '/', path);
}
