import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { CHIRP_PIECE } from '../../site/chirp.ts';
import { REMOTE_OPEN, STATUS_BYTES, statusOf } from '../../site/remote-io.ts';
import { SystemError } from '../chirp/beneath.ts';
import { type Answer, at, held, opened, openedAny, OK, there, writeAll } from '../chirp/held.ts';
import { appendOnce, makesOnce } from '../chirp/once.ts';
import { SEARCHED } from '../chirp/secrets.ts';
import { type Asked, number, status } from './asked.ts';

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_EXCL, O_APPEND } = constants;

export function openIt(asked: Asked): Answer {
  const flags = number(asked, 0);
  const has = (flag: number) => (flags & flag) !== 0;
  return at(asked, !has(REMOTE_OPEN.noLink) && !has(REMOTE_OPEN.excludes), async ({ path }) => {
    const found = await there(path);
    if (found?.isSymbolicLink()) throw new SystemError(has(REMOTE_OPEN.excludes) ? 'EEXIST' : 'ELOOP');
    if (found?.isDirectory()) throw new SystemError(has(REMOTE_OPEN.excludes) ? 'EEXIST' : 'EISDIR');
    if (found && !found.isFile()) throw new SystemError('EACCES');
    const made = makesOnce(asked, found);
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
  const follow = number(asked, 2) === 0;
  return opened({ ...asked, follow }, O_RDONLY, 0, (file) => piece(asked, file, (bytes) => Buffer.allocUnsafe(bytes)));
}

/** A file that was checked and opened for a job's reads. */
export interface OpenRead {
  /** `memory`: gives memory for so many bytes, in which the answer's bytes then are. */
  readonly read: (offset: number, length: number, memory: (bytes: number) => Buffer) => Answer;
  /** What is under way is finished before. */
  readonly close: () => void;
}

/** Rejects as a read would. The file stays open until `close`. */
export function openRead(asked: Asked): Promise<OpenRead> {
  return new Promise((resolve, reject) => {
    opened({ ...asked, follow: number(asked, 2) === 0 }, O_RDONLY, 0, async (file) => {
      const under = new Set<Promise<unknown>>();
      await refuseKey(asked, file);
      await new Promise<void>((close) => {
        resolve({
          read: (offset, length, memory) => {
            const answer = piece({ ...asked, numbers: [offset, length] }, file, memory);
            const settled = answer.catch(() => undefined).finally(() => under.delete(settled));
            under.add(settled);
            return answer;
          },
          close,
        });
      });
      await Promise.all(under);
      return OK;
    }).catch(reject);
  });
}

async function piece(asked: Asked, file: FileHandle, memory: (bytes: number) => Buffer): Answer {
  await refuseKey(asked, file);
  const wanted = Math.min(Math.max(number(asked, 1), 0), CHIRP_PIECE);
  const bytes = memory(STATUS_BYTES + wanted);
  let got = 0;
  while (got < wanted) {
    const { bytesRead } = await file.read(bytes, STATUS_BYTES + got, wanted - got, number(asked, 0) + got);
    if (bytesRead === 0) break;
    got += bytesRead;
  }
  // Read afterwards: a change while we read is seen in it.
  statusOf(await file.stat({ bigint: true })).copy(bytes);
  return { result: got, bytes: bytes.subarray(0, STATUS_BYTES + got) };
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

export function append(asked: Asked): Answer {
  return opened(asked, O_RDWR | O_APPEND, 0, async (file) => {
    await sameFile(asked, file);
    await appendOnce(asked, file, asked.bytes);
    return status(file);
  });
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
