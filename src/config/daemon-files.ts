import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod';
import { isMarked } from '../util/marked-dir.ts';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';
import { isAlive } from '../util/process-identity.ts';
import { BUILD } from './build.ts';
import type { Paths } from './paths.ts';

/** What a daemon says of itself. `since`: Unix milliseconds; `build`: the Scheduler's, of which the others are children. */
export const DAEMON = z.object({
  pid: z.number().int().gt(1),
  started: z.string(),
  since: z.number(),
  build: z.exactOptional(BUILD),
});
export type Daemon = z.infer<typeof DAEMON>;

const FILE = DAEMON.extend({ name: z.string() });
/** The Scheduler's name; a GridManager's is `gm:` and its identity. */
export const SCHEDULER = 'scheduler';

/**
 * Which daemons run, on disk beside the queue's own account of it: with a Redis that does not answer, `down` must still
 * find them.
 */
export function noteDaemon(paths: Pick<Paths, 'stateDir'>, name: string, daemon: Daemon): void {
  // A state directory that was removed is not made again.
  if (!isMarked(paths.stateDir)) return;
  ensurePrivateDir(dirOf(paths));
  writeWhole(fileOf(paths, name), JSON.stringify({ ...daemon, name }));
}

export function forgetDaemon(paths: Pick<Paths, 'stateDir'>, name: string): void {
  rmSync(fileOf(paths, name), { force: true });
}

/** Those that are alive. */
export function daemonsOnDisk(paths: Pick<Paths, 'stateDir'>): (Daemon & { readonly name: string })[] {
  let names: string[];
  try {
    names = readdirSync(dirOf(paths)).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    try {
      const daemon = FILE.parse(JSON.parse(readFileSync(join(dirOf(paths), name), 'utf8')));
      return isAlive(daemon) ? [daemon] : [];
    } catch {
      // It ended between the two looks, or a full disk cut it short.
      return [];
    }
  });
}

/**
 * Keeps the Redis that the environment of the Scheduler names, for DAG managers: they are jobs, whose environment is in the
 * queue for all to see, and the URL may have a password.
 */
export function noteRedisUrl(paths: Pick<Paths, 'stateDir'>, url: string | undefined): void {
  ensurePrivateDir(dirOf(paths));
  if (url === undefined || url === '') rmSync(urlFile(paths), { force: true });
  else writeWhole(urlFile(paths), url);
}

export function notedRedisUrl(paths: Pick<Paths, 'stateDir'>): string | undefined {
  try {
    return readFileSync(urlFile(paths), 'utf8');
  } catch {
    return undefined;
  }
}

function urlFile(paths: Pick<Paths, 'stateDir'>): string {
  return join(dirOf(paths), 'redis-url');
}

function dirOf({ stateDir }: Pick<Paths, 'stateDir'>): string {
  return join(stateDir, 'daemons');
}

function fileOf(paths: Pick<Paths, 'stateDir'>, name: string): string {
  return join(dirOf(paths), `${createHash('sha256').update(name).digest('hex').slice(0, 16)}.json`);
}
