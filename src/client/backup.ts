import { loadPaths } from '../config/paths.ts';
import { refuseClosed } from '../util/private-file.ts';
import { loadSettings } from '../config/settings.ts';
import { ownBuild } from '../config/build.ts';
import type { BackupReport } from '../backup/take.ts';
import type { Recovery } from './recovery-types.ts';
import { environment, queuePlace } from './daemon.ts';
import type { AskUser, OpenOptions } from './types.ts';

/** Where `Gryphus.backup` writes what it takes. */
export interface BackupRequest {
  /** Absolute. */
  readonly file: string;
  /** The backup is encrypted with it. */
  readonly passphrase?: string;
}

/** What `Gryphus.restore` reads. */
export interface RestoreRequest {
  /** Absolute. */
  readonly file: string;
  /** Called if the backup is encrypted. */
  readonly passphrase: () => Promise<string>;
  /** Absolute: where the results of jobs go whose own directory is gone. */
  readonly into: string;
  /** For sites that ask questions at the log-in. */
  readonly ask?: AskUser;
}

export interface Restored extends Recovery {
  /** Unix milliseconds of the moment to which the queue was put back. */
  readonly at: number;
  /** The host on which the backup was made. */
  readonly host: string;
  /** How many jobs are held, because they may have run since. */
  readonly held: number;
  /** Their HoldReasonSubCode. */
  readonly subCode: number;
  /** Files of the configuration that were here already and differ from the backup's: absolute paths. */
  readonly kept: readonly string[];
  /** The state directory that was backed up, if it was another path. */
  readonly movedFrom?: string;
}

/** Writes a backup of an agent while it runs (docs/recovery.md). Rejects with a GryphusError. */
export async function backupAgent(
  request: BackupRequest,
  options: Pick<OpenOptions, 'home'> = {},
): Promise<BackupReport> {
  const [{ openPresentQueue }, { takeBackup }] = await Promise.all([
    import('./upgrade.ts'),
    import('../backup/take.ts'),
  ]);
  const paths = loadPaths(environment(options));
  refuseClosed(paths.stateDir);
  const settings = await loadSettings(paths);
  const queue = await openPresentQueue(paths, { ...queuePlace(paths, settings), start: 'if-needed' });
  try {
    return await takeBackup(queue, paths, { ...request, version: ownBuild().version });
  } finally {
    await queue.close();
  }
}

/**
 * Puts a backup back where there is no queue, and takes the agent's jobs at its sites over (docs/recovery.md). The next
 * `Gryphus.open` starts the daemons. Rejects with a GryphusError; the state directory is then as it was.
 */
export async function restoreAgent(
  request: RestoreRequest,
  options: Pick<OpenOptions, 'home'> = {},
): Promise<Restored> {
  const { restoreBackup } = await import('./restore-backup.ts');
  return restoreBackup(loadPaths(environment(options)), request);
}
