import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';
import type { FetchProgress } from './types.ts';

export interface ServerOptions {
  readonly stateDir: string;
  readonly socketDir?: string;
  readonly server?: string | undefined;
  readonly onFetch?: ((progress: FetchProgress) => void) | undefined;
}

/** The files of a private Redis; all paths are absolute. */
export interface ServerPlace {
  readonly dir: string;
  readonly socket: string;
  readonly pidFile: string;
  /** Locked while the server lives. */
  readonly lock: string;
  readonly log: string;
  readonly conf: string;
}

/** sun_path holds 108 bytes, including the NUL (unix(7)). */
const SUN_PATH = 107;
const RECORD = 'socket';

/** The place recorded by the process that started a server, or else where one would be started now. */
export function serverPlace(options: ServerOptions): ServerPlace {
  const dir = join(options.stateDir, 'redis');
  const record = join(dir, RECORD);
  const socket = existsSync(record) ? readFileSync(record, 'utf8').trim() : newSocket(options);
  return place(dir, socket);
}

/**
 * Whether a server was ever started on this state directory. If not, a server that answers belongs to a removed one.
 */
export function isRecorded({ stateDir }: Pick<ServerOptions, 'stateDir'>): boolean {
  return existsSync(join(stateDir, 'redis', RECORD));
}

/** Creates the directories, and records where the socket will be. */
export function prepareServerPlace(options: ServerOptions): ServerPlace {
  const dir = join(options.stateDir, 'redis');
  ensurePrivateDir(dir);
  const socket = newSocket(options);
  ensurePrivateDir(join(socket, '..'));
  writeWhole(join(dir, RECORD), `${socket}\n`);
  return place(dir, socket);
}

function place(dir: string, socket: string): ServerPlace {
  return {
    dir,
    socket,
    pidFile: join(dir, 'redis.pid'),
    lock: join(dir, 'redis.lock'),
    log: join(dir, 'redis.log'),
    conf: join(dir, 'redis.conf'),
  };
}

function newSocket({ stateDir, socketDir }: ServerOptions): string {
  const wished = join(socketDir ?? join(stateDir, 'run'), 'redis.sock');
  if (Buffer.byteLength(wished) <= SUN_PATH) return wished;
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 12);
  const runtime = process.env['XDG_RUNTIME_DIR'];
  return runtime && isAbsolute(runtime) && Buffer.byteLength(runtime) < 60
    ? join(runtime, `gryphus-${name}`, 'redis.sock')
    : `/tmp/gryphus-${process.getuid?.() ?? 0}-${name}/redis.sock`;
}
