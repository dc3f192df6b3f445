import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Paths } from './paths.ts';

/** The path of a manager's login socket; hashed, because the path of a Unix socket must be short. */
export function loginSocketPath(paths: Pick<Paths, 'socketDir'>, identity: string): string {
  return socketOf(paths, 'login', identity);
}

/** The path of the socket at which a manager answers the reads of running jobs. */
export function directReadsPath(paths: Pick<Paths, 'socketDir'>, identity: string): string {
  return socketOf(paths, 'reads', identity);
}

function socketOf({ socketDir }: Pick<Paths, 'socketDir'>, name: string, identity: string): string {
  return join(socketDir, `${name}-${createHash('sha256').update(identity).digest('hex').slice(0, 12)}`);
}
