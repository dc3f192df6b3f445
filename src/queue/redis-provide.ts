import { execFile } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asError, GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';

const run = promisify(execFile);

/** redis-server of Debian and Ubuntu and the libraries that a small system may lack. */
const PACKAGES = [
  'redis-server',
  'redis-tools',
  'liblua5.1-0',
  'libjemalloc2',
  'liblzf1',
  'lua-bitop',
  'lua-cjson',
  'libatomic1',
  'libsystemd0',
];

const programIn = (stateDir: string) => join(stateDir, 'redis-program', 'redis-server');

/** What `provideRedis` brought into the state directory, if it did. */
export function providedRedis(stateDir: string): string | undefined {
  const program = programIn(stateDir);
  try {
    accessSync(program, constants.X_OK);
    return program;
  } catch {
    return undefined;
  }
}

/** Debian's packages, unpacked below the state directory: whole, or not at all. 'missing-program' where there is no apt. */
export async function provideRedis(stateDir: string): Promise<string> {
  const there = providedRedis(stateDir);
  if (there) return there;
  ensurePrivateDir(stateDir);
  const fresh = mkdtempSync(join(stateDir, 'redis-program.'));
  try {
    const debs = join(fresh, 'debs');
    mkdirSync(debs);
    // libsystemd0 and others have other names in some releases: what cannot be had is left out, and the try-out decides.
    for (const name of PACKAGES) await run('apt-get', ['download', name], { cwd: debs }).catch(() => undefined);
    for (const deb of readdirSync(debs)) await run('dpkg', ['-x', join(debs, deb), fresh]);
    rmSync(debs, { recursive: true });
    const home = join(stateDir, 'redis-program');
    writeWhole(join(fresh, 'redis-server'), wrapper(fresh, home), 0o700);
    chmodSync(join(fresh, 'redis-server'), 0o700);
    rmSync(home, { recursive: true, force: true });
    renameSync(fresh, home);
    await run(programIn(stateDir), ['--version']);
    return programIn(stateDir);
  } catch (thrown) {
    rmSync(join(stateDir, 'redis-program'), { recursive: true, force: true });
    throw new GryphusError('missing-program', 'redis-server could not be downloaded.', {
      cause: asError(thrown),
      suggestions: [
        'Install it: apt-get install redis-server, dnf install redis, brew install redis.',
        'Or name one with GRYPHUS_REDIS_SERVER, or a running one with REDIS_URL.',
      ],
    });
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function wrapper(fresh: string, home: string): string {
  const libraries = ['usr/lib', 'lib'].flatMap((dir) =>
    existsSync(join(fresh, dir))
      ? readdirSync(join(fresh, dir))
          .filter((name) => name.includes('-linux-'))
          .map((name) => join(home, dir, name))
      : [],
  );
  const path = shellQuote([...libraries].join(':'));
  return `#!/bin/sh\nLD_LIBRARY_PATH=${path} exec ${shellQuote(join(home, 'usr/bin/redis-server'))} "$@"\n`;
}
