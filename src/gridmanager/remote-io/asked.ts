import { type FileHandle, lstat } from 'node:fs/promises';
import type { HomeAnswer } from '../../site/chirp.ts';
import { statusOf } from '../../site/remote-io.ts';
import { SystemError } from '../chirp/beneath.ts';
import { type Answer, at, type Call } from '../chirp/held.ts';
import type { Root } from './roots.ts';

/** One call of a job. */
export interface Asked extends Call {
  readonly roots: readonly Root[];
}

export function number({ numbers }: Asked, i: number): number {
  return numbers[i] ?? 0;
}

export async function status(file: FileHandle, result = 0): Promise<HomeAnswer> {
  return { result, bytes: statusOf(await file.stat({ bigint: true })) };
}

export function statusAt(asked: Asked, follow: boolean): Answer {
  return at(asked, follow, async ({ path }) => ({ result: 0, bytes: statusOf(await lstat(path, { bigint: true })) }));
}

/** The other path of a call with two: it must lie in the same directory of those that may be reached. */
export function sameRoot(asked: Asked, root: Root, of: (path: string) => Root): void {
  if (of(asked.to) !== root) throw new SystemError('EXDEV');
}
