import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { GryphusError } from '../errors.ts';
import type { ServerOptions } from './redis-place.ts';

type Options = Pick<ServerOptions, 'server' | 'stateDir'>;

/**
 * The redis-server program: the configured one, or else one on PATH, or else the fetched one. Throws 'missing-program'
 * if the configured one is not executable.
 */
export function findServer(options: Options): string | undefined {
  return installedServer(options) ?? fetchedServer(options.stateDir);
}

/** As `findServer`, but without a fetched server. */
export function installedServer({ server }: Pick<Options, 'server'>): string | undefined {
  const named = process.env['GRYPHUS_REDIS_SERVER'] ?? server;
  if (named !== undefined) {
    if (isProgram(named)) return named;
    throw new GryphusError('missing-program', `The Redis server ${named} is not an executable program.`, {
      suggestions: ['Correct GRYPHUS_REDIS_SERVER (or redis.server in config.toml), or remove it.'],
    });
  }
  for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of ['redis-server', 'valkey-server']) {
      const path = join(dir, name);
      if (dir !== '' && isProgram(path)) return path;
    }
  }
  return undefined;
}

/** Where a fetched server and its libraries are, or would be. */
export function fetchedDir(stateDir: string): string {
  return join(stateDir, 'redis-program');
}

export function fetchedServer(stateDir: string): string | undefined {
  const program = join(fetchedDir(stateDir), 'redis-server');
  return isProgram(program) ? program : undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
