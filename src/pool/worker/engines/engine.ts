import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckpointEngineName } from '../../../job/checkpoint-engines.ts';
import { CHIRP_CONFIG } from '../../../site/chirp.ts';
import { CHECKPOINT_IMAGE } from '../../../staging/asked-for.ts';
import { imageIn } from '../../../staging/image.ts';
import { sentence } from '../../host/probe-program.ts';
import { AD_FILES } from '../ad-files.ts';
import type { AttemptDir } from '../attempt-dir.ts';
import type { PlacedJob } from '../job-script.ts';

/** How a checkpoint went: `trouble`, why there is none; `isBroken`, the job may have been harmed and must not go on. */
export interface Dumped {
  readonly trouble?: string;
  readonly isBroken?: boolean;
}

/** An attempt's directory, as an engine sees it. */
export type EngineDir = Pick<AttemptDir, 'path' | 'work' | 'stdin' | 'stream'>;

export interface EngineJob {
  readonly key: string;
  readonly dir: EngineDir;
  readonly args: readonly string[];
}

/**
 * What writes and restores the images of jobs on this machine. An image is the whole state of a job: its processes, the
 * files of its sandbox, and how long its streams were. It is one file, which starts with the header of
 * src/staging/image.ts and is whole or not there, also if everything dies while it is written.
 */
export interface CheckpointEngine {
  readonly name: CheckpointEngineName;
  /** What a machine needs to restore an image that was made here. */
  readonly platform: string;
  /** The command that starts a job so that it can be checkpointed. */
  readonly start: (job: EngineJob, placed: PlacedJob) => PlacedJob;
  /**
   * The command that goes on from the image at `baseIn`, as the attempt's own program, in its sandbox and with its streams.
   * The report has a line `restored` as soon as the job goes on, and `ended` if it was not the restorer that was killed.
   */
  readonly restore: (job: EngineJob, placed: PlacedJob) => PlacedJob;
  /** Why an attempt that has ended was never restored; `undefined` if it was. */
  readonly unrestored: (dir: EngineDir) => string | undefined;
  /**
   * Writes the image to `imageOf`, of the program below `waiter`, and lets the job go on or ends it with the image (`kill`).
   * What cannot be carried is found first: then nothing has happened to the job.
   */
  readonly dump: (job: EngineJob, waiter: number, kill: boolean) => Promise<Dumped>;
}

/** Names in a sandbox that belong to the attempt, not to the job. */
export const OURS: readonly string[] = [CHECKPOINT_IMAGE, CHIRP_CONFIG, ...Object.values(AD_FILES)];
export const HELPER = 'gryphus-helper';

/**
 * The image of a run: `saved/image` in its directory, whole or not there. It has the processes, the files of the sandbox
 * and the length of the streams, so it is a state to go on from whatever the job did afterwards.
 */
export const imageOf = (dir: EngineDir) => imageIn(join(dir.path, 'saved'));
/** The image from which the attempt went on, out of the job's reach. */
export const baseIn = (dir: EngineDir) => imageIn(join(dir.path, 'base'));
/** Where it is said whether the job was restored, or why it was not. */
export const reportOf = (dir: EngineDir) => join(dir.path, 'restored');

export function reportIn(dir: EngineDir): string {
  try {
    return readFileSync(reportOf(dir), 'utf8');
  } catch {
    return '';
  }
}

/** Why a job was not restored, by its report. */
export function unrestoredBy(dir: EngineDir): string | undefined {
  const said = reportIn(dir);
  if (said.split('\n').includes('restored')) return undefined;
  return said === '' ? `${HELPER} could not be started` : sentence(said, HELPER);
}
