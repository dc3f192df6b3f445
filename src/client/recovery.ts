import { loadPaths } from '../config/paths.ts';
import { environment } from './daemon.ts';
import type { Recovery, RecoverRequest } from './recovery-types.ts';
import type { OpenOptions } from './types.ts';

/**
 * Takes over an agent whose state directory was lost, and its jobs at the sites (docs/recovery.md). Stops the daemons of
 * this state directory, or of `home`; the next `Gryphus.open` starts them. Rejects with a GryphusError.
 */
export async function recoverAgent(
  request: RecoverRequest,
  options: Pick<OpenOptions, 'home'> = {},
): Promise<Recovery> {
  const { recover } = await import('./recover.ts');
  return recover(loadPaths(environment(options)), request);
}
