import type { BigIntStats } from 'node:fs';
import { type FileHandle, lstat } from 'node:fs/promises';
import { CHIRP_PIECE } from '../../site/chirp.ts';
import { there, writeAll } from './held.ts';
import type { Intent } from './journal.ts';

/** A request that must not be done twice, although it may be sent twice. */
export interface Once {
  /** If it is sent again, after a process at home has ended: what it was about to find when it came first. */
  readonly before: Intent | undefined;
  /** Must be called before anything is changed. */
  readonly intend: (found: Pick<Intent, 'ino' | 'size'>) => void;
}

export const inoOf = (found: BigIntStats | undefined) => (found ? { ino: String(found.ino) } : {});

/** If it comes again, what is behind the place where it was to begin says how much of it arrived. */
export async function appendOnce({ before, intend }: Once, file: FileHandle, bytes: Uint8Array): Promise<void> {
  const { size, ino } = await file.stat();
  const arrived = before?.size === undefined ? 0 : await arrivedBehind(file, before.size, size, bytes);
  if (!before) intend({ ino: String(ino), size });
  await writeAll(file, bytes.subarray(arrived), null);
}

/** How many of the bytes stand behind an offset: all of them somewhere, or the first ones at the end. */
async function arrivedBehind(file: FileHandle, from: number, size: number, bytes: Uint8Array): Promise<number> {
  const all = Buffer.alloc(Math.min(Math.max(size - from, 0), 4 * CHIRP_PIECE));
  const { bytesRead } = await file.read(all, 0, all.length, from);
  const behind = all.subarray(0, bytesRead);
  return overlap(behind, bytes);
}

/**
 * The length of `wanted` if it is somewhere in `text`, else of its longest beginning at the end of `text`: in one pass (Knuth, Morris,
 * Pratt), since both may have been made by somebody who wants this process to take long.
 */
function overlap(text: Uint8Array, wanted: Uint8Array): number {
  if (wanted.length === 0) return 0;
  const borders = new Uint32Array(wanted.length);
  /** How much of `wanted` is there when another byte follows. */
  const next = (length: number, byte: number | undefined): number => {
    let at = length;
    while (at > 0 && wanted[at] !== byte) at = borders[at - 1] ?? 0;
    return wanted[at] === byte ? at + 1 : 0;
  };
  for (let i = 1; i < wanted.length; i++) borders[i] = next(borders[i - 1] ?? 0, wanted[i]);
  let length = 0;
  for (const byte of text) {
    length = next(length, byte);
    if (length === wanted.length) break;
  }
  return length;
}

/** Takes away what is at a path. What is there when it comes again is another file, if its inode is. */
export async function takeOnce({ before, intend }: Once, path: string, take: () => Promise<unknown>): Promise<void> {
  const found = await there(path);
  if (before?.ino !== undefined && String(found?.ino) !== before.ino) return;
  if (!before) intend(inoOf(found));
  await take();
}

/** Makes something at a path, unless its first try did. */
export async function makeOnce(
  { before, intend }: Once,
  path: string,
  make: () => Promise<unknown>,
): Promise<BigIntStats> {
  const found = await there(path);
  if (!before) intend(inoOf(found));
  if (!(before && before.ino === undefined && found)) await make();
  return lstat(path, { bigint: true });
}

/** Whether an open of a file makes it, and made it if this is not its first try. */
export function makesOnce({ before, intend }: Once, found: BigIntStats | undefined): boolean {
  if (!before) intend(inoOf(found));
  return before ? before.ino === undefined : found === undefined;
}
