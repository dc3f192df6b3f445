import { rmSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Paths } from '../config/paths.ts';
import type { Queue } from '../queue/api.ts';
import { writeContainer } from './container.ts';
import { contentOf } from './content.ts';

/** A backup that is on disk. */
export interface BackupReport {
  /** Absolute. */
  readonly file: string;
  readonly bytes: number;
  /** Unix milliseconds of the moment that the backup shows. */
  readonly at: number;
  readonly agent: string;
}

/**
 * Writes a backup of the agent while it runs. The queue is as it was at one moment. The files are copied after it, so they may know
 * more; what they know of later is cut off when the backup is put back.
 */
export async function takeBackup(
  queue: Queue,
  paths: Paths,
  { file, passphrase, version }: { readonly file: string; readonly passphrase?: string; readonly version: string },
): Promise<BackupReport> {
  const at = Date.now();
  const rdb = await queue.snapshot();
  try {
    const manifest = { at, version, agent: queue.agent, host: hostname(), stateDir: paths.stateDir };
    const bytes = await writeContainer(file, contentOf(paths, manifest, rdb), passphrase);
    return { file, bytes, at, agent: queue.agent };
  } finally {
    rmSync(rdb, { force: true });
  }
}
