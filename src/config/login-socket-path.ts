import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Paths } from './paths.ts';

/** The path of a manager's login socket; hashed, because the path of a Unix socket must be short. */
export function loginSocketPath(paths: Pick<Paths, 'socketDir'>, identity: string): string {
  return join(paths.socketDir, `login-${createHash('sha256').update(identity).digest('hex').slice(0, 12)}`);
}
