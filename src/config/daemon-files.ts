import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod';
import { DAEMON, type Daemon } from '../util/daemon.ts';
import { isMarked } from '../util/marked-dir.ts';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';
import { isAlive } from '../util/process-identity.ts';
import type { Paths } from './paths.ts';

const FILE = DAEMON.extend({ name: z.string() });

/**
 * Records on disk which daemons run, besides the record in the queue: if Redis does not answer, `down` must still find
 * them.
 */
export function noteDaemon(paths: Pick<Paths, 'stateDir'>, name: string, daemon: Daemon): void {
  // A removed state directory must not be created again.
  if (!isMarked(paths.stateDir)) return;
  ensurePrivateDir(dirOf(paths));
  writeWhole(fileOf(paths, name), JSON.stringify({ ...daemon, name }));
}

export function forgetDaemon(paths: Pick<Paths, 'stateDir'>, name: string): void {
  rmSync(fileOf(paths, name), { force: true });
}

/** The daemons that are alive. */
export function daemonsOnDisk(paths: Pick<Paths, 'stateDir'>): (Daemon & { readonly name: string })[] {
  let names: string[];
  try {
    names = readdirSync(dirOf(paths)).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const daemon = read(join(dirOf(paths), name));
    return daemon && isAlive(daemon) ? [daemon] : [];
  });
}

/** Whether this daemon ended without removing its record, as it does at an orderly end. */
export function hasCrashed(paths: Pick<Paths, 'stateDir'>, name: string): boolean {
  const daemon = read(fileOf(paths, name));
  return daemon !== undefined && !isAlive(daemon);
}

/** `undefined` if there is no such record, or a full disk cut it short. */
function read(file: string): (Daemon & { readonly name: string }) | undefined {
  try {
    return FILE.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

/**
 * Keeps the Redis URL from the Scheduler's environment for DAG managers. They are jobs, whose environment anyone can
 * read in the queue, and the URL may contain a password.
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
