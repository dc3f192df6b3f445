import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join } from 'node:path';
import { asError, GryphusError } from '../errors.ts';
import { type Directive, loadSshConfig } from './ssh-config-parser.ts';
import { matchesPattern } from './ssh-pattern.ts';
import type { Surroundings } from './ssh-settings.ts';
import { ownUser } from '../util/own-user.ts';

const EXEC_MS = 10_000;

/** This process's user, home and environment, as used by the configuration's tokens. */
export function surroundings(): Surroundings {
  const { username, uid } = ownUser();
  return {
    home: homedir(),
    localUser: username,
    localHost: hostname(),
    uid,
    env: process.env,
    exec: (command) => spawnSync('/bin/sh', ['-c', command], { stdio: 'ignore', timeout: EXEC_MS }).status === 0,
  };
}

/** The user's configuration and the system's or, with `file`, only that one (as with `ssh -F`). */
export function readSshConfig(file: string | undefined, home: string): readonly (readonly Directive[])[] {
  if (file !== undefined) {
    if (readText(file) === undefined) throw new GryphusError('bad-config', `There is no ssh configuration ${file}.`);
    return [load(file, join(home, '.ssh'), home)];
  }
  return [load(join(home, '.ssh', 'config'), join(home, '.ssh'), home), load('/etc/ssh/ssh_config', '/etc/ssh', home)];
}

function load(file: string, base: string, home: string): readonly Directive[] {
  return loadSshConfig(file, {
    read: readText,
    glob: (pattern) => {
      const expanded = pattern.startsWith('~/') ? join(home, pattern.slice(2)) : pattern;
      return glob(expanded.startsWith('/') ? expanded : join(base, expanded));
    },
  });
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (thrown) {
    const error = asError(thrown) as NodeJS.ErrnoException;
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw new GryphusError('bad-config', `Cannot read ${path}: ${error.message}.`, { cause: error });
  }
}

/** The paths that match a pattern with `*` and `?`, sorted; a leading dot must be in the pattern. */
function glob(pattern: string): readonly string[] {
  let found = [''];
  for (const part of pattern.split('/').slice(1)) {
    found = found.flatMap((dir) => {
      if (!/[*?]/.test(part)) return [`${dir}/${part}`];
      return names(dir === '' ? '/' : dir)
        .filter((name) => matchesPattern(name, part) && (part.startsWith('.') || !name.startsWith('.')))
        .sort()
        .map((name) => `${dir}/${name}`);
    });
  }
  return found;
}

function names(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}
