import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { Paths } from '../config/paths.ts';
import { readAt, type TarEntry } from '../staging/tar.ts';

/** What a backup says about itself: its first file. */
export const MANIFEST = z.object({
  /** Unix milliseconds of the moment that it shows. */
  at: z.int().min(0).max(8.64e15),
  /** The Gryphus that made it. */
  version: z.string(),
  agent: z.string(),
  host: z.string(),
  /** The absolute path of the state directory. */
  stateDir: z.string(),
});
export type Manifest = z.infer<typeof MANIFEST>;

export const MANIFEST_NAME = 'manifest.json';
/** The queue, as Redis saved it. */
export const QUEUE_NAME = 'queue.rdb';

/** Bytes that are read at once. */
const PIECE = 1 << 20;

/**
 * Of the configuration directory: with GRYPHUS_HOME, it also has the state, former ones, results, and backups, each of which would
 * contain the one before.
 */
const CONFIGURATION = /^(?:config\.toml|netrc|(?:sites|credentials)(?:\/.*)?)$/;
/**
 * Of the state directory: Redis' own files, which its snapshot replaces, what belongs to processes or to this machine, and what can
 * be made or fetched again.
 */
const LEFT_OUT =
  /^(?:redis|redis-program|run|log|daemons|packs|state-id|queue-mark|place|in-use|pool\/worker|pool\/[^/]*\.pid|spool\/\.urls|spool\/\.map-[^/]*)$/;
const TEMPORARY = /\.new$/;

/** The manifest, the queue's snapshot in `rdb`, and the files of the configuration and the state directory. */
export async function* contentOf(paths: Paths, manifest: Manifest, rdb: string): AsyncGenerator<TarEntry> {
  yield { name: MANIFEST_NAME, mode: 0o600, content: Buffer.from(JSON.stringify(manifest)) };
  yield { name: QUEUE_NAME, mode: 0o600, content: { path: rdb, bytes: statSync(rdb).size } };
  for (const name of filesBelow(paths.configDir, (one) => !CONFIGURATION.test(one)))
    yield* entryOf(join(paths.configDir, name), `config/${name}`);
  for (const name of filesBelow(paths.stateDir, (one) => LEFT_OUT.test(one)))
    yield* entryOf(join(paths.stateDir, name), `state/${name}`);
}

/** Regular files, relative to the directory; sockets and links belong to this machine. */
function* filesBelow(dir: string, leftOut: (name: string) => boolean, under = ''): Generator<string> {
  for (const entry of listed(join(dir, under))) {
    const name = under === '' ? entry.name : `${under}/${entry.name}`;
    if (leftOut(name) || TEMPORARY.test(name)) continue;
    if (entry.isDirectory()) yield* filesBelow(dir, leftOut, name);
    else if (entry.isFile()) yield name;
  }
}

/** Jobs end meanwhile, and what they left is removed: before a directory is read, or before a file is opened. */
function listed(dir: string): readonly Dirent[] {
  return unlessGone(() => readdirSync(dir, { withFileTypes: true })) ?? [];
}

function* entryOf(path: string, name: string): Generator<TarEntry> {
  const fd = unlessGone(() => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  if (fd === undefined) return;
  try {
    const { mode, size } = fstatSync(fd);
    yield { name, mode: mode & 0o777, content: { pieces: piecesOf(fd, size), bytes: size } };
  } finally {
    closeSync(fd);
  }
}

/** As long as the header says, whatever happens to the file: a part that is cut off meanwhile is read as zeros, as tar does. */
function* piecesOf(fd: number, bytes: number): Generator<Buffer> {
  for (let done = 0; done < bytes; done += PIECE) {
    const wanted = Math.min(PIECE, bytes - done);
    const piece = readAt(fd, done, wanted);
    yield piece.length === wanted ? piece : Buffer.concat([piece], wanted);
  }
}

function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && /^(?:ENOENT|ENOTDIR|ELOOP)$/.test(String(thrown.code)))
      return undefined;
    throw thrown;
  }
}
