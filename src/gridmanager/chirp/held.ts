import { type BigIntStats, constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import type { HomeAnswer } from '../../site/chirp.ts';
import { beneath, type Bounds, codeOf, type Place, SystemError } from './beneath.ts';
import type { Once } from './once.ts';
import type { Secrets } from './secrets.ts';

/** What a request about files works on. */
export interface FilesOptions extends Once {
  readonly bounds: Bounds;
  readonly secrets: Pick<Secrets, 'hasKey'>;
}

/** `path` and `to`: the first two words; `numbers` as in the request. */
export interface Call extends FilesOptions {
  readonly path: string;
  readonly to: string;
  readonly numbers: readonly number[];
  readonly bytes: Uint8Array;
  /** Whether a link at the end of the path is followed by `opened`; default true. */
  readonly follow?: boolean;
}
export type Answer = Promise<HomeAnswer>;

const { O_RDONLY } = constants;
export const SAFE = constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
export const OK: HomeAnswer = { result: 0 };

export function at(call: Call, follow: boolean, work: (place: Place) => Answer): Answer {
  return beneath(call.bounds, call.path, follow, work);
}

/** `undefined` if there is nothing. */
export async function there(path: string): Promise<BigIntStats | undefined> {
  return lstat(path, { bigint: true }).catch((thrown: unknown) => {
    if (codeOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  });
}

/** Opens a regular file. Others could block, or be devices. `flags`: may depend on what is there. */
export function opened(
  call: Call,
  flags: number | ((found: BigIntStats | undefined) => number),
  mode: number | undefined,
  work: (file: FileHandle) => Answer,
): Answer {
  return at(call, call.follow ?? true, async ({ path }) => {
    const found = await there(path);
    if (found?.isDirectory()) throw new SystemError('EISDIR');
    if (found && !found.isFile()) throw new SystemError('EACCES');
    return held(path, typeof flags === 'number' ? flags : flags(found), mode, async (file) => {
      if (!(await file.stat()).isFile()) throw new SystemError('EACCES');
      return work(file);
    });
  });
}

/** Opens a file or directory that can be read. */
export function openedAny(call: Call, work: (file: FileHandle) => Answer): Answer {
  return at(call, true, async ({ path }) => {
    const found = await lstat(path);
    if (!found.isFile() && !found.isDirectory()) throw new SystemError('EACCES');
    return held(path, O_RDONLY, 0, work);
  });
}

export async function held(path: string, flags: number, mode = 0, work: (file: FileHandle) => Answer): Answer {
  const file = await open(path, flags | SAFE, mode & 0o777);
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

export function keepAnchor({ bounds }: Call, found: Stats): void {
  if (found.isDirectory() && bounds.isAnchor(found)) throw new SystemError('EACCES');
}

export function both(call: Call, work: (from: string, to: string) => Promise<unknown>): Answer {
  return at(call, false, async (from) =>
    at({ ...call, path: call.to }, false, async (to) => work(from.path, to.path).then(() => OK)),
  );
}

export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number | null): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const where = position === null ? null : position + done;
    done += (await file.write(bytes, done, bytes.length - done, where)).bytesWritten;
  }
}

/** access(2), from what a file says of itself: asking the system could lead through a link that was put there meanwhile. */
export function allowed({ mode, uid, gid }: Pick<Stats, 'mode' | 'uid' | 'gid'>, wanted: number): HomeAnswer {
  const mine = process.getuid?.();
  if (mine === 0) {
    if ((wanted & 1) === 0 || (mode & 0o111) !== 0) return OK;
    throw new SystemError('EACCES');
  }
  const groups = process.getgroups?.() ?? [];
  const bits = uid === mine ? mode >> 6 : groups.includes(gid) || process.getgid?.() === gid ? mode >> 3 : mode;
  if ((bits & wanted & 7) !== (wanted & 7)) throw new SystemError('EACCES');
  return OK;
}
