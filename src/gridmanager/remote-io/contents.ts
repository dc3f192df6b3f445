import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { CHIRP_PIECE } from '../../site/chirp.ts';
import { REMOTE_OPEN, statusOf } from '../../site/remote-io.ts';
import { SystemError } from '../chirp/beneath.ts';
import { type Answer, at, held, opened, openedAny, OK, writeAll } from '../chirp/held.ts';
import { SEARCHED } from '../chirp/secrets.ts';
import { type Asked, inoOf, number, status, there } from './asked.ts';

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_EXCL, O_APPEND } = constants;

export function openIt(asked: Asked): Answer {
  const flags = number(asked, 0);
  const has = (flag: number) => (flags & flag) !== 0;
  return at(asked, !has(REMOTE_OPEN.noLink) && !has(REMOTE_OPEN.excludes), async ({ path }) => {
    const found = await there(path);
    if (found?.isSymbolicLink()) throw new SystemError(has(REMOTE_OPEN.excludes) ? 'EEXIST' : 'ELOOP');
    if (found?.isDirectory()) throw new SystemError(has(REMOTE_OPEN.excludes) ? 'EEXIST' : 'EISDIR');
    if (found && !found.isFile()) throw new SystemError('EACCES');
    // Its first try may have created it.
    const made = asked.before ? asked.before.ino === undefined : found === undefined;
    if (!asked.before) asked.intend(inoOf(found));
    const excludes = has(REMOTE_OPEN.excludes) && !(asked.before && made);
    const wanted =
      (has(REMOTE_OPEN.writes) ? (has(REMOTE_OPEN.reads) ? O_RDWR : O_WRONLY) : O_RDONLY) |
      (has(REMOTE_OPEN.creates) ? O_CREAT : 0) |
      (excludes ? O_EXCL : 0) |
      (has(REMOTE_OPEN.empties) ? O_TRUNC : 0);
    return held(path, wanted, number(asked, 1), async (file) => {
      if (!(await file.stat()).isFile()) throw new SystemError('EACCES');
      if (has(REMOTE_OPEN.reads) && found && !has(REMOTE_OPEN.empties)) await refuseKey(asked, file);
      return status(file, made ? 1 : 0);
    });
  });
}

export function read(asked: Asked): Answer {
  return opened(asked, O_RDONLY, 0, async (file) => {
    await refuseKey(asked, file);
    const bytes = Buffer.allocUnsafe(Math.min(Math.max(number(asked, 1), 0), CHIRP_PIECE));
    let got = 0;
    while (got < bytes.length) {
      const { bytesRead } = await file.read(bytes, got, bytes.length - got, number(asked, 0) + got);
      if (bytesRead === 0) break;
      got += bytesRead;
    }
    // Read afterwards: a change while we read is seen in it.
    const state = statusOf(await file.stat({ bigint: true }));
    return { result: got, bytes: Buffer.concat([state, bytes.subarray(0, got)]) };
  });
}

export function write(asked: Asked): Answer {
  return opened(asked, O_RDWR, 0, async (file) => {
    await sameFile(asked, file);
    const offset = number(asked, 0);
    if (offset < 0) throw new SystemError('EINVAL');
    // Whoever writes over the words by which a key is known could then read the key.
    if (offset < SEARCHED) await refuseKey(asked, file);
    await writeAll(file, asked.bytes, offset);
    return status(file);
  });
}

/** Written once: if it comes again, what is behind the place where it was to begin says how much of it arrived. */
export function append(asked: Asked): Answer {
  return opened(asked, O_RDWR | O_APPEND, 0, async (file) => {
    await sameFile(asked, file);
    const { size, ino } = await file.stat();
    const arrived =
      asked.before?.size === undefined ? 0 : await arrivedBehind(file, asked.before.size, size, asked.bytes);
    if (!asked.before) asked.intend({ ino: String(ino), size });
    await writeAll(file, asked.bytes.subarray(arrived), null);
    return status(file);
  });
}

/** How many of the bytes stand behind an offset: all of them somewhere, or the first ones at the end. */
async function arrivedBehind(file: FileHandle, from: number, size: number, bytes: Uint8Array): Promise<number> {
  const all = Buffer.alloc(Math.min(Math.max(size - from, 0), 4 * CHIRP_PIECE));
  const { bytesRead } = await file.read(all, 0, all.length, from);
  const behind = all.subarray(0, bytesRead);
  const wanted = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length > 0 && behind.includes(wanted)) return bytes.length;
  for (let length = Math.min(behind.length, bytes.length - 1); length > 0; length--)
    if (behind.subarray(behind.length - length).equals(wanted.subarray(0, length))) return length;
  return 0;
}

export function truncate(asked: Asked): Answer {
  if (number(asked, 0) < 0) throw new SystemError('EINVAL');
  return opened(asked, O_RDWR, 0, async (file) => {
    await file.truncate(number(asked, 0));
    return status(file);
  });
}

export function fsync(asked: Asked): Answer {
  return openedAny(asked, async (file) => file.sync().then(() => OK));
}

async function refuseKey({ secrets }: Asked, file: FileHandle): Promise<void> {
  if (await secrets.hasKey(file)) throw new SystemError('EACCES');
}

/** What was opened may have been replaced by another file since. */
async function sameFile({ to }: Asked, file: FileHandle): Promise<void> {
  if (to !== '' && String((await file.stat({ bigint: true })).ino) !== to) throw new SystemError('ESTALE');
}
