import { constants } from 'node:fs';
import { type FileHandle, open, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as z from 'zod';
import { namesFlushed } from '../../util/names-flushed.ts';
import { count, type Read } from '../../util/schema.ts';

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
/**
 * How far behind the recorded size to search for our text after a crash, bytes: others may have appended to the log in
 * the meantime.
 */
const OTHERS = 16 << 20;

/** One piece of text for one user log. */
export const PIECE = z.strictObject({
  path: z.string(),
  text: z.string(),
  /** Size of the log before the piece was first written, bytes; from `sizeOf`. */
  size: count,
});
export type Piece = Read<typeof PIECE>;

/** Size in bytes; 0 if there is no log yet. Rejects if the path is not a regular file. */
export async function sizeOf(path: string): Promise<number> {
  try {
    return plain(await stat(path), path).size;
  } catch (thrown) {
    if (isMissing(thrown)) return 0;
    throw thrown;
  }
}

/**
 * Appends the piece exactly once, however often it is called; it is on disk, with the log's name, when this resolves. Text from an earlier,
 * interrupted call is found after `size`. Other writers' text is kept.
 */
export async function appendOnce({ path, text, size }: Piece): Promise<void> {
  // Opening a FIFO without a reader, or a terminal, must not block.
  const log = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0o666);
  try {
    const before = plain(await log.stat(), path).size;
    const bytes = Buffer.from(text);
    const rest = before > size ? missing(bytes, await tail(path, size, bytes.length + OTHERS)) : bytes;
    if (rest.length > 0) await write(log, rest, before);
    await log.datasync();
    // It was made by this call or an interrupted one.
    if (size === 0 || before === 0) await namesFlushed(dirname(await realpath(path)));
  } finally {
    await log.close();
  }
}

/** The part of `text` that is not in the log yet; `behind`: what the log contains after the recorded size. */
export function missing(text: Buffer, behind: Buffer): Buffer {
  if (behind.includes(text)) return Buffer.alloc(0);
  return text.subarray(0, behind.length).equals(behind) ? text.subarray(behind.length) : text;
}

/** Writes all of it, or nothing. */
async function write(log: FileHandle, bytes: Buffer, before: number): Promise<void> {
  let done = 0;
  try {
    while (done < bytes.length) done += (await log.write(bytes, done)).bytesWritten;
  } catch (thrown) {
    if ((await log.stat()).size === before + done) await log.truncate(before);
    throw thrown;
  }
}

async function tail(path: string, from: number, most: number): Promise<Buffer> {
  const log = await open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  try {
    const bytes = Buffer.alloc(Math.min(most, Math.max(0, (await log.stat()).size - from)));
    let done = 0;
    while (done < bytes.length) {
      const { bytesRead } = await log.read(bytes, done, bytes.length - done, from + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return bytes.subarray(0, done);
  } finally {
    await log.close();
  }
}

function plain<T extends { isFile(): boolean }>(found: T, path: string): T {
  if (!found.isFile()) throw new Error(`${path} is not a regular file`);
  return found;
}

function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
}
