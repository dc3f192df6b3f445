import { execFile, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asError, GryphusError } from '../errors.ts';
import { flushTree } from '../util/flush-tree.ts';
import { ensurePrivateDir } from '../util/private-file.ts';
import { howToInstall, noRedis } from './redis-advice.ts';
import { aptInstall, hasApt, withDebs } from './redis-apt.ts';
import { fetchedDir, fetchedServer, installedServer } from './redis-find.ts';
import type { QueueOptions } from './types.ts';

const run = promisify(execFile);

/**
 * Starts the server with the libraries that were fetched along with it. They are found by the path `.`, because a
 * colon, a semicolon or `$ORIGIN` in the directory's own name would have a meaning for the dynamic linker (ld.so(8)).
 */
const START = '#!/bin/sh\ncd "${0%/*}/lib" && LD_LIBRARY_PATH=. exec ./redis-server "$@"\n';

type Options = Pick<QueueOptions, 'stateDir' | 'server' | 'onFetch'>;

/**
 * Fetches a Redis server from the system's package sources into the state directory: completely or not at all, and only
 * once, even if several processes ask for it. Returns the program's path. Rejects with 'missing-program' if there is no
 * apt or the fetch fails.
 */
export async function provideRedis({ stateDir, onFetch }: Options): Promise<string> {
  if (!hasApt()) throw noRedis('There is no redis-server on this machine, and the queue needs one.');
  ensurePrivateDir(stateDir);
  let waited = false;
  const lock = await takeLock(`${fetchedDir(stateDir)}.lock`, () => {
    waited = true;
    onFetch?.({ step: 'waiting', percent: 0 });
  });
  try {
    if (fetchedServer(stateDir) === undefined) {
      await reported(onFetch, 'fetching', (onPercent) => fetchInto(stateDir, onPercent));
    } else if (waited) onFetch?.({ step: 'done', percent: 100 });
    return join(fetchedDir(stateDir), 'redis-server');
  } finally {
    lock.release();
  }
}

/**
 * Installs the system's package, unless there is a Redis on PATH. Rejects with 'not-permitted' if not root, with
 * 'missing-program' without apt.
 */
export async function installRedis({ server, onFetch }: Options): Promise<void> {
  if (installedServer({ server }) !== undefined) return;
  if (!hasApt()) throw noRedis('There is no apt on this machine to install a redis-server with.');
  if (process.getuid?.() !== 0) {
    throw new GryphusError('not-permitted', 'Only root can install packages.', {
      suggestions: ['Unless told to install it, Gryphus fetches its own Redis.', howToInstall()],
    });
  }
  await reported(onFetch, 'installing', aptInstall).catch((thrown: unknown) => {
    throw noRedis(`redis-server could not be installed: ${asError(thrown).message}`, thrown);
  });
}

async function reported(
  onFetch: Options['onFetch'],
  step: 'fetching' | 'installing',
  work: (onPercent: (percent: number) => void) => Promise<void>,
): Promise<void> {
  let shown = 0;
  onFetch?.({ step, percent: shown });
  try {
    await work((percent) => {
      if (percent < shown + 1) return;
      shown = Math.floor(percent);
      onFetch?.({ step, percent: shown });
    });
  } catch (thrown) {
    onFetch?.({ step: 'failed', percent: 0 });
    throw thrown;
  }
  onFetch?.({ step: 'done', percent: 100 });
}

async function fetchInto(stateDir: string, onPercent: (percent: number) => void): Promise<void> {
  const fresh = `${fetchedDir(stateDir)}.new`;
  const clean = () => rmSync(fresh, { recursive: true, force: true });
  // Remains of an interrupted fetch.
  clean();
  mkdirSync(fresh, { mode: 0o700 });
  process.once('exit', clean);
  try {
    await withDebs(onPercent, async (debs) => {
      for (const deb of debs) await run('dpkg', ['-x', deb, join(fresh, 'unpacked')]);
    });
    onPercent(97);
    arrange(fresh);
    await tryOut(join(fresh, 'redis-server'), stateDir);
    await flushTree(fresh);
    rmSync(fetchedDir(stateDir), { recursive: true, force: true });
    renameSync(fresh, fetchedDir(stateDir));
  } catch (thrown) {
    if (thrown instanceof GryphusError) throw thrown;
    const cause = asError(thrown);
    throw noRedis(`There is no redis-server on this machine, and none could be fetched: ${cause.message}`, cause);
  } finally {
    process.removeListener('exit', clean);
    clean();
  }
}

/** Puts the server and all libraries into one directory, with a script that starts the server. */
function arrange(fresh: string): void {
  const unpacked = join(fresh, 'unpacked');
  const lib = join(fresh, 'lib');
  mkdirSync(lib, { mode: 0o700 });
  for (const dir of ['usr/lib', 'lib'].map((name) => join(unpacked, name))) {
    for (const triplet of existsSync(dir) ? readdirSync(dir).filter((name) => name.includes('-linux-')) : []) {
      const libraries = readdirSync(join(dir, triplet)).filter((name) => /\.so(\.|$)/.test(name));
      for (const name of libraries) renameSync(join(dir, triplet, name), join(lib, name));
    }
  }
  const programs = ['redis-server', 'valkey-server'].map((name) => join(unpacked, 'usr/bin', name));
  const program = programs.find((one) => existsSync(one));
  if (program === undefined) throw new Error('the packages do not contain redis-server');
  // In some packages, a link to another program.
  copyFileSync(program, join(lib, 'redis-server'));
  rmSync(unpacked, { recursive: true });
  writeFileSync(join(fresh, 'redis-server'), START, { mode: 0o700 });
}

async function tryOut(program: string, stateDir: string): Promise<void> {
  try {
    await run(program, ['--version']);
  } catch (thrown) {
    const { code, stderr = '' } = thrown as { code?: unknown; stderr?: string };
    const noexec = code === 'EACCES' || code === 126;
    const why = noexec ? 'the file system runs no programs (noexec)' : stderr.trim();
    throw noRedis(`The redis-server that was fetched into ${stateDir} does not run there: ${why}.`, thrown);
  }
}

/**
 * Holds a lock file until released or until this process is gone; calls `onWait` while another process holds it.
 * Without flock(1), no lock is taken.
 */
async function takeLock(file: string, onWait: () => void): Promise<{ release(): void }> {
  const script =
    'exec 9>>"$0" || exit; if command -v flock >/dev/null; then flock -n 9 || { echo wait; flock 9; }; fi; echo held; exec cat';
  const child = spawn('/bin/sh', ['-c', script, file], { stdio: ['pipe', 'pipe', 'ignore'] });
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (said: string) => {
      if (said.includes('wait')) onWait();
      if (said.includes('held')) resolve();
    });
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
  return { release: () => child.stdin.destroy() };
}
