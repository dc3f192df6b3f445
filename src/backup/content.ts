import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { Paths } from '../config/paths.ts';
import type { TarEntry } from '../staging/tar.ts';

/** What a backup says about itself: its first file. */
export const MANIFEST = z.object({
  /** Unix milliseconds of the moment that it shows. */
  at: z.number(),
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

/** Files up to this size, in bytes, are read at once: others may be replaced while they are sent. */
const AT_ONCE = 8 << 20;

/**
 * Of the state directory: Redis' own files, which its snapshot replaces, what belongs to processes or to this machine, and what can
 * be made or fetched again.
 */
const LEFT_OUT =
  /^(?:redis|redis-program|run|log|daemons|packs|state-id|pool\/worker|pool\/[^/]*\.pid|spool\/\.urls|spool\/\.map-[^/]*)$/;
const TEMPORARY = /\.new$/;

/** The manifest, the queue's snapshot in `rdb`, and the files of the configuration and the state directory. */
export async function* contentOf(paths: Paths, manifest: Manifest, rdb: string): AsyncGenerator<TarEntry> {
  yield { name: MANIFEST_NAME, mode: 0o600, content: Buffer.from(JSON.stringify(manifest)) };
  yield { name: QUEUE_NAME, mode: 0o600, content: { path: rdb, bytes: statSync(rdb).size } };
  for (const name of filesBelow(paths.configDir, (one) => join(paths.configDir, one) === paths.stateDir))
    yield* entryOf(join(paths.configDir, name), `config/${name}`);
  for (const name of filesBelow(paths.stateDir, (one) => LEFT_OUT.test(one)))
    yield* entryOf(join(paths.stateDir, name), `state/${name}`);
}

/** Regular files, relative to the directory; sockets and links belong to this machine. */
function* filesBelow(dir: string, leftOut: (name: string) => boolean, under = ''): Generator<string> {
  const here = join(dir, under);
  if (!existsSync(here)) return;
  for (const entry of readdirSync(here, { withFileTypes: true })) {
    const name = under === '' ? entry.name : `${under}/${entry.name}`;
    if (leftOut(name) || TEMPORARY.test(name)) continue;
    if (entry.isDirectory()) yield* filesBelow(dir, leftOut, name);
    else if (entry.isFile()) yield name;
  }
}

/** Nothing if the file has been removed meanwhile. */
function* entryOf(path: string, name: string): Generator<TarEntry> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  const mode = found.mode & 0o777;
  if (found.size > AT_ONCE) yield { name, mode, content: { path, bytes: found.size } };
  else if (existsSync(path)) yield { name, mode, content: readFileSync(path) };
}
