import type { BigIntStats } from 'node:fs';
import { type FileHandle, lstat } from 'node:fs/promises';
import type { HomeAnswer } from '../../site/chirp.ts';
import { statusOf } from '../../site/remote-io.ts';
import { codeOf, SystemError } from '../chirp/beneath.ts';
import { type Answer, at, type Call } from '../chirp/held.ts';
import type { Intent } from './journal.ts';
import type { Root } from './roots.ts';

/** One call of a job. */
export interface Asked extends Call {
  readonly roots: readonly Root[];
  /** If it is sent again, after a process at home has ended: what it was about to find when it came first. */
  readonly before: Intent | undefined;
  /** Must be called before anything is changed that must not be changed twice. */
  readonly intend: (found: Pick<Intent, 'ino' | 'size'>) => void;
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

/** `undefined` if there is nothing. */
export async function there(path: string): Promise<BigIntStats | undefined> {
  return lstat(path, { bigint: true }).catch((thrown: unknown) => {
    if (codeOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  });
}

export const inoOf = (found: BigIntStats | undefined) => (found ? { ino: String(found.ino) } : {});

/** The other path of a call with two: it must lie in the same directory of those that may be reached. */
export function sameRoot(asked: Asked, root: Root, of: (path: string) => Root): void {
  if (of(asked.to) !== root) throw new SystemError('EXDEV');
}
