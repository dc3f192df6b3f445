import { constants, homedir } from 'node:os';
import type { HomeAnswer, HomeRequest } from '../../site/chirp.ts';
import { REMOTE_CALLS, REMOTE_OPEN, type RemoteCall } from '../../site/remote-io.ts';
import { codeOf, SystemError } from '../chirp/beneath.ts';
import type { Answer } from '../chirp/held.ts';
import type { RequestJournal } from '../chirp/journal.ts';
import type { Secrets } from '../chirp/secrets.ts';
import { type Asked, number, sameRoot, statusAt } from './asked.ts';
import { append, fsync, openIt, type OpenRead, openRead, read, truncate, write } from './contents.ts';
import {
  access,
  chmod,
  chown,
  hardLink,
  list,
  makeDirectory,
  move,
  readLink,
  remove,
  setTimes,
  softLink,
} from './names.ts';
import { boundsOf, readRoot, type Root, rootFor, rootsOf } from './roots.ts';

/** What a job may reach at home, and who it is. */
export interface RemoteHome {
  /** The submit directory. */
  readonly iwd: string;
  /** The entries of `pool.remote_io`. */
  readonly others: readonly string[];
  readonly secrets: Pick<Secrets, 'isClosed' | 'isAnchor' | 'hasKey'>;
  readonly journal: RequestJournal;
}

const CALLS: Readonly<Record<Exclude<RemoteCall, 'roots'>, (asked: Asked, root: Root) => Answer>> = {
  stat: (asked) => statusAt(asked, number(asked, 0) !== 0),
  list,
  open: openIt,
  read,
  write,
  append,
  truncate,
  unlink: (asked) => remove(asked, false),
  rmdir: (asked) => remove(asked, true),
  mkdir: makeDirectory,
  rename: move,
  link: hardLink,
  symlink: softLink,
  readlink: readLink,
  chmod,
  chown,
  utimens: setTimes,
  access: (asked, { writable }) => access(asked, writable),
  fsync,
};

const READING: ReadonlySet<RemoteCall> = new Set<RemoteCall>([
  'roots',
  'stat',
  'list',
  'read',
  'readlink',
  'access',
  'fsync',
]);
/** Those that name a second file, not its inode or a position. */
const OF_TWO: ReadonlySet<RemoteCall> = new Set<RemoteCall>(['rename', 'link']);

/** Requests that change nothing: their answers, which can be long, are not remembered but found anew. */
export function isRemoteReading(call: string | undefined): boolean {
  return REMOTE_CALLS.some((name) => name === call && READING.has(name));
}

/** The answer to an attempt that may not ask. */
export const REMOTE_REFUSED = -constants.errno.EACCES;

/** Answers a call of a job with `want_remote_io`; errors as an errno below 0. Never rejects. */
export async function answerRemote(request: HomeRequest, bytes: Uint8Array, home: RemoteHome): Promise<HomeAnswer> {
  try {
    return await answer(request, bytes, home);
  } catch (thrown) {
    return asErrno(thrown);
  }
}

export function asErrno(thrown: unknown): HomeAnswer {
  const code = codeOf(thrown) ?? 'EIO';
  return { result: -(Object.entries(constants.errno).find(([name]) => name === code)?.[1] ?? constants.errno.EIO) };
}

/** Opens the file of a 'read', to be read several times. Rejects as a read would. */
export async function openRemote(request: HomeRequest, home: RemoteHome): Promise<OpenRead> {
  const [, path = ''] = request.words;
  const roots = rootsAt(home);
  const bounds = boundsOf(rootFor(path, roots), home.secrets);
  const once = home.journal.once(request, 'read');
  return openRead({
    bounds,
    secrets: home.secrets,
    path,
    to: '',
    numbers: request.numbers,
    bytes: NONE,
    roots,
    ...once,
  });
}

const NONE = new Uint8Array();

function rootsAt({ iwd, others, secrets }: RemoteHome): readonly Root[] {
  return rootsOf(
    iwd,
    others.flatMap((entry) => readRoot(entry, homedir()) ?? []),
    secrets,
  );
}

async function answer(request: HomeRequest, bytes: Uint8Array, home: RemoteHome): Promise<HomeAnswer> {
  const [word, path = '', to = ''] = request.words;
  const call = REMOTE_CALLS.find((name) => name === word);
  if (!call) throw new SystemError('ENOSYS');
  const { secrets, journal } = home;
  const roots = rootsAt(home);
  if (call === 'roots') return told(roots);
  const of = (text: string) => rootFor(text, roots);
  const root = of(call === 'symlink' ? to : path);
  const asked: Asked = {
    bounds: boundsOf(root, secrets),
    secrets,
    path,
    to,
    numbers: request.numbers,
    bytes,
    roots,
    ...journal.once(request, call),
  };
  if (!root.writable && changes(call, asked)) throw new SystemError('EROFS');
  if (OF_TWO.has(call)) sameRoot(asked, root, of);
  return CALLS[call](asked, root);
}

function changes(call: RemoteCall, asked: Asked): boolean {
  const { writes, creates, empties } = REMOTE_OPEN;
  if (call === 'open') return (number(asked, 0) & (writes | creates | empties)) !== 0;
  return !READING.has(call);
}

function told(roots: readonly Root[]): HomeAnswer {
  const owner = Buffer.alloc(16);
  owner.writeBigInt64LE(BigInt(process.getuid?.() ?? -1), 0);
  owner.writeBigInt64LE(BigInt(process.getgid?.() ?? -1), 8);
  return { result: 0, bytes: Buffer.concat([owner, Buffer.from(roots.map(({ path }) => `${path}\0`).join(''))]) };
}
