import type { BigIntStats } from 'node:fs';
import * as z from 'zod';
import { type Read, text } from '../util/schema.ts';

/**
 * What a job with `want_remote_io` asks its home, in the order of native/remote-io/src/wire.h. Paths are absolute. `words`
 * and `numbers` as said; an answer's `result` is 0 or more, or an errno of Linux below 0. STATUS: what `statusOf` makes.
 */
export const REMOTE_CALLS = [
  /** The owner's uid and gid (8 bytes each), and the directories that may be reached, each with a zero byte behind it. */
  'roots',
  /** PATH, FOLLOW: STATUS. */
  'stat',
  /** PATH AFTER: names in their order, from the one behind AFTER on: 2 bytes of length, the name, STATUS. 1: there are more. */
  'list',
  /** PATH, FLAGS MODE: STATUS. Creates and empties it as `REMOTE_OPEN` says; 1 if it was created. */
  'open',
  /** PATH, OFFSET LENGTH NO_LINK: STATUS and the bytes, fewer at the end of the file. NO_LINK: fails for a link. */
  'read',
  /** PATH INODE, OFFSET and the bytes: STATUS. */
  'write',
  /** PATH INODE and the bytes, which are written behind its end: STATUS. */
  'append',
  /** PATH, SIZE: STATUS. */
  'truncate',
  'unlink',
  'rmdir',
  /** PATH, MODE: STATUS. */
  'mkdir',
  /** FROM TO, NO_REPLACE. */
  'rename',
  /** FROM TO, FOLLOW. */
  'link',
  /** TARGET PATH. */
  'symlink',
  'readlink',
  /** PATH, MODE: STATUS. */
  'chmod',
  /** PATH, UID GID FOLLOW: STATUS. */
  'chown',
  /** PATH FOLLOW, SECONDS NANOSECONDS SECONDS NANOSECONDS of the access and the change: STATUS. */
  'utimens',
  /** PATH, MODE of access(2). */
  'access',
  'fsync',
] as const;
export type RemoteCall = (typeof REMOTE_CALLS)[number];

/** The flags of `open`. */
export const REMOTE_OPEN = { reads: 1, writes: 2, creates: 4, excludes: 8, empties: 16, noLink: 32 } as const;

/** In the place of nanoseconds. */
export const REMOTE_TIME = { now: -1, omit: -2 } as const;

/** The answer to a job whose lease is over while home is away. */
export const REMOTE_OFFLINE = -100_000;

/**
 * Where a worker's connections for the reads of one job end at home, and the key by which they are known. On a machine of a site, the
 * ways home lead to the same process.
 */
export const directReads = z.strictObject({
  name: text.max(64),
  secret: z.string().regex(/^[0-9a-f]{64}$/),
  /** The socket on the machine of the agent. */
  socket: text,
});
export type DirectReadsAt = Read<typeof directReads>;

/** The length of what `statusOf` makes. */
export const STATUS_BYTES = 13 * 8;

/** The state of a file: 13 numbers of 8 bytes, little-endian; times in nanoseconds. */
export function statusOf(found: BigIntStats): Buffer {
  const { dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, atimeNs, mtimeNs, ctimeNs } = found;
  const bytes = Buffer.allocUnsafe(STATUS_BYTES);
  const all = [dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, atimeNs, mtimeNs, ctimeNs];
  for (const [i, value] of all.entries()) bytes.writeBigInt64LE(BigInt.asIntN(64, value), 8 * i);
  return bytes;
}
