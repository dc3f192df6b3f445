import {
  closeSync,
  copyFileSync,
  fchownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { AttemptDir } from './attempt-dir.ts';
import type { JobUser } from './job-users.ts';
import type { Run } from './run.ts';

/**
 * Gives a job's files to the account under which it will run. What only the worker needs stays the worker's: the job can
 * pass through the attempt's directory, but change nothing in it.
 */
export function handOver(dir: AttemptDir, user: JobUser, joinStderr: boolean): void {
  give(dir.work, user);
  for (const path of [dir.stream('stdout'), ...(joinStderr ? [] : [dir.stream('stderr')])]) {
    // A program may open its own streams again, as /dev/stdout.
    const fd = openSync(path, 'w', 0o600);
    fchownSync(fd, user.uid, user.gid);
    closeSync(fd);
  }
  if (lstatSync(dir.stdin, { throwIfNoEntry: false })?.isFile()) lchownSync(dir.stdin, user.uid, user.gid);
}

/** Everything at and below a path. */
export function give(path: string, user: Pick<JobUser, 'uid' | 'gid'>): void {
  const found = lstatSync(path);
  if (found.isDirectory()) for (const name of readdirSync(path)) give(join(path, name), user);
  lchownSync(path, user.uid, user.gid);
}

/** A job's own copy of its proxy, which is the worker's. */
export function copyProxy(dir: AttemptDir, user: JobUser, proxy: string): string {
  const copy = join(dir.path, 'proxy', 'x509.pem');
  const fresh = `${copy}.new`;
  mkdirSync(dirname(copy), { recursive: true, mode: 0o711 });
  rmSync(fresh, { force: true });
  copyFileSync(proxy, fresh);
  lchownSync(fresh, user.uid, user.gid);
  renameSync(fresh, copy);
  return copy;
}

/** Copies proxies again that have been renewed. */
export function renewCopies(runs: Iterable<Run>): void {
  for (const { phase, dir, record, proxy } of runs) {
    const { user } = record;
    if (phase === 'ended' || user === undefined || proxy === undefined || !('path' in dir)) continue;
    const copy = statSync(join((dir as AttemptDir).path, 'proxy', 'x509.pem'), { throwIfNoEntry: false });
    const there = statSync(proxy, { throwIfNoEntry: false });
    if (copy && there && there.mtimeMs > copy.mtimeMs) copyProxy(dir as AttemptDir, user, proxy);
  }
}
