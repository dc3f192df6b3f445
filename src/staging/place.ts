import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { chmod, copyFile, link as makeLink, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import type { Readable } from 'node:stream';
import { GryphusError, asError } from '../errors.ts';
import { namesFlushed } from '../util/names-flushed.ts';
import { inherits } from './inherits.ts';
import { isSpecial, pour } from './pour.ts';

export interface Placement {
  /** Absolute: the complete file as it came home. */
  readonly from: string;
  /** Absolute: where the user wants it. */
  readonly to: string;
  readonly executable: boolean;
  /** Permission bits for the file, regardless of the umask. */
  readonly mode?: number | undefined;
  /** The user's umask at the time of the submit; default: this process's. */
  readonly umask?: number | undefined;
  /** The source is never written to again, only replaced or removed, so the target may be a link to it. */
  readonly mayLink?: boolean;
  /** The directories below this one may have been made for it. */
  readonly below?: string;
}

/** This process's umask; read only once, because reading it requires setting it briefly. */
export const UMASK = process.umask();

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * Puts a file where the user wants it: atomically, and on disk before this resolves, its name only after `namesKept`. Repeating
 * it is harmless. The source stays; the caller removes the attempt's directory. Jobs that write the same name at once do not
 * interfere before the rename: the last one's file is there, complete.
 */
export async function place(placement: Placement): Promise<void> {
  const { from, to } = placement;
  const waiting = partOf(to, from);
  let linked = false;
  await placeWhole(
    to,
    waiting,
    () => createReadStream(from),
    async () => {
      linked = placement.mayLink === true && (await link(from, waiting, dirname(to)));
      if (!linked) await copyFile(from, waiting, constants.COPYFILE_FICLONE);
      const file = await open(waiting, 'r');
      try {
        await file.chmod(modeOf(placement));
        await file.datasync();
      } finally {
        await file.close();
      }
    },
  );
  // Renaming one name of a file to another one of the same file does nothing.
  if (linked) await rm(waiting, { force: true });
}

/** Resolves when the names of files that were placed are on disk. Rejects with 'disk-full' or 'output-unwritable'. */
export async function namesKept(placed: readonly Pick<Placement, 'to' | 'below'>[]): Promise<void> {
  const directories = new Set<string>();
  for (const { to, below } of placed) {
    directories.add(dirname(to));
    if (below === undefined) continue;
    for (let at = dirname(to); at.startsWith(`${below}/`); at = dirname(at)) directories.add(dirname(at));
  }
  const flush = (directory: string) =>
    namesFlushed(directory).catch((thrown: unknown) => {
      throw unplaceable(directory, thrown);
    });
  await Promise.all([...directories].map(flush));
}

export function modeOf({ executable, mode, umask = UMASK }: Placement): number {
  return mode === undefined ? (executable ? 0o777 : 0o666) & ~umask : mode & 0o777;
}

/** Whether it could be linked, which costs nothing where a copy would cost as much as the transfer. */
async function link(from: string, waiting: string, directory: string): Promise<boolean> {
  if (await inherits(directory)) return false;
  await rm(waiting, { force: true });
  return makeLink(from, waiting).then(
    () => true,
    () => false,
  );
}

/**
 * Renames `waiting`, which `write` makes complete, to `to`, or leaves nothing of it behind. What is not an ordinary file
 * gets the bytes of `stream` instead.
 */
export async function placeWhole(
  to: string,
  waiting: string,
  stream: () => Readable,
  write: () => Promise<void>,
): Promise<void> {
  try {
    if (await isSpecial(to)) return await pour(stream(), to);
    await write();
    await rename(waiting, to);
  } catch (thrown) {
    await rm(waiting, { force: true }).catch(() => undefined);
    throw unplaceable(to, thrown);
  }
}

/**
 * Where a file grows until it is complete and can be renamed to `path`: in the same directory, under a name that is
 * always the same for one `source`, and short enough even if `path` has the longest possible name.
 */
export function partOf(path: string, source = path): string {
  return join(
    dirname(path),
    `.gryphus-part-${createHash('sha256').update(`${path}\0${source}`).digest('hex').slice(0, 16)}`,
  );
}

/** A result's path under `directory`; 'bad-input' if the name leads out of it. */
export function within(directory: string, name: string): string {
  const path = normalize(join(directory, name));
  if (path !== directory && !path.startsWith(directory.endsWith('/') ? directory : `${directory}/`)) {
    throw new GryphusError('bad-input', `The name ${JSON.stringify(name)} is outside ${directory}.`);
  }
  return path;
}

/** Makes the directories between `base`, which must exist, and the file to be at `path`; `umask` as in a placement. */
export async function makeParents(base: string, path: string, umask = UMASK): Promise<void> {
  const parent = dirname(path);
  if (parent === base || !parent.startsWith(`${base}/`)) return;
  try {
    const first = await mkdir(parent, { recursive: true });
    if (first === undefined || umask === UMASK) return;
    for (let made = parent; made.length >= first.length; made = dirname(made)) await chmod(made, 0o777 & ~umask);
  } catch (thrown) {
    throw unplaceable(path, thrown);
  }
}

/** Whether the problem is that this machine cannot write a result. */
export function isOurDisk(thrown: unknown): thrown is GryphusError {
  return thrown instanceof GryphusError && (thrown.code === 'disk-full' || thrown.code === 'output-unwritable');
}

/** The error for a result that cannot be written at home: 'disk-full' or 'output-unwritable'. */
export function unplaceable(path: string, thrown: unknown): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  const cause = asError(thrown);
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  if (FULL.has(code)) {
    return new GryphusError(
      'disk-full',
      `There is no space for the output ${path} (${code === 'EDQUOT' ? 'quota' : 'disk full'}).`,
      {
        cause,
        suggestions: ['Free some space, then `gryphus release` the job: its results wait at the site.'],
      },
    );
  }
  const why =
    code === 'ENOENT' ? 'its directory does not exist' : code === 'EACCES' ? 'permission denied' : cause.message;
  return new GryphusError('output-unwritable', `The output ${path} cannot be written: ${why}.`, {
    cause,
    suggestions: ['Fix that, then `gryphus release` the job: its results wait at the site.'],
  });
}
