import { spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  realpathSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { flushDir } from '../util/private-file.ts';
import { readPid } from '../util/pid-file.ts';
import { type ProcessIdentity, isAlive, processIdentity } from '../util/process-identity.ts';

/** The server's file of all changes: in later versions a directory. */
const CHANGES = 'appendonly.aof';
const CHANGES_DIR = 'appendonlydir';

/** Puts copies in the place of the queue's files, so that a server of another machine that only slept writes where nobody reads. */
export function renewFiles(stateDir: string): void {
  const dir = join(stateDir, 'redis');
  const changes = join(dir, CHANGES_DIR);
  const files = existsSync(changes) ? readdirSync(changes).map((name) => join(changes, name)) : [];
  for (const file of [join(dir, CHANGES), ...files]) {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) continue;
    const copy = `${file}.copy`;
    try {
      copyFileSync(file, copy);
      flush(copy);
      renameSync(copy, file);
      flushDir(dirname(file));
    } catch (thrown) {
      rmSync(copy, { force: true });
      throw thrown;
    }
  }
}

function flush(file: string): void {
  const fd = openSync(file, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Whether no server holds its lock; also where locks cannot be taken at all. */
export function isServerFree(stateDir: string): boolean {
  const lock = join(stateDir, 'redis', 'redis.lock');
  if (!existsSync(lock)) return true;
  const { error, status } = spawnSync('flock', ['-n', lock, 'true'], { stdio: 'ignore' });
  return error !== undefined || status !== 1;
}

/**
 * The server that its pid file names, if it is a process of this machine: on a file system of several, another one's server may have
 * written it, and any process may have that number here.
 */
export function serverProcess(dir: string, pidFile: string): ProcessIdentity | undefined {
  const pid = readPid(pidFile);
  if (pid === undefined) return undefined;
  const found = processIdentity(pid);
  return isAlive(found) && isThere(pid, dir) ? found : undefined;
}

/** A server works in its directory. Without /proc, it is believed. */
function isThere(pid: number, dir: string): boolean {
  if (!existsSync('/proc/self/cwd')) return true;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dir);
  } catch {
    return false;
  }
}
