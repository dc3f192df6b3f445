import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { ServerOptions } from './redis-place.ts';
import { providedRedis } from './redis-provide.ts';

/** The redis-server program: the named one, else of PATH, else the one that `provideRedis` brought; 'missing-program' without. */
export function findServer({ server, stateDir }: ServerOptions): string {
  const named = process.env['GRYPHUS_REDIS_SERVER'] ?? server;
  if (named !== undefined) {
    if (isProgram(named)) return named;
    throw new GryphusError('missing-program', `The Redis server ${named} is not a program that can be run.`, {
      suggestions: ['Correct GRYPHUS_REDIS_SERVER (or redis.server in config.toml), or remove it.'],
    });
  }
  for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of ['redis-server', 'valkey-server']) {
      const path = join(dir, name);
      if (dir !== '' && isProgram(path)) return path;
    }
  }
  const provided = providedRedis(stateDir);
  if (provided) return provided;
  throw new GryphusError('missing-program', 'There is no redis-server on this machine, and the queue needs one.', {
    suggestions: [
      'Install it: apt-get install redis-server, dnf install redis, brew install redis.',
      'Or name one with GRYPHUS_REDIS_SERVER, or a running one with REDIS_URL.',
    ],
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
