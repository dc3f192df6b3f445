import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';

/** The socket at which a manager's login socket is; its name is short whatever the identity is. */
export function loginSocketPath(paths: Pick<Paths, 'socketDir'>, identity: string): string {
  return join(paths.socketDir, `login-${createHash('sha256').update(identity).digest('hex').slice(0, 12)}`);
}
