import { resolve } from 'node:path';
import { readString, type TextSource } from './values.ts';

/** The path of the job's user log, absolute; `undefined` if it has none. */
export function userLogPath(attrs: TextSource): string | undefined {
  const path = readString(attrs, 'UserLog');
  if (path === undefined || path === '' || path === '/dev/null') return undefined;
  return resolve(readString(attrs, 'Iwd') ?? '/', path);
}
