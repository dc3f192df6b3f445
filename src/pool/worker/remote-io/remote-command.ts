import { constants, copyFileSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../../../errors.ts';
import { REMOTE_IO_DIR } from '../../../staging/asked-for.ts';
import type { CheckpointEngines } from '../engines/engines.ts';
import type { NativeHelper } from '../../host/remote-io-helper.ts';
import { CHIRP_CONFIG } from '../../../site/chirp.ts';
import { AttemptDir } from '../attempt-dir.ts';
import { checkpointed } from '../checkpoint.ts';
import type { PlacedJob } from '../job-script.ts';
import { jobAdOf } from '../job-ad-of.ts';
import type { Run } from '../run.ts';
import { readString } from '../../../job/values.ts';

/**
 * Puts what a job needs to reach its files at home (`want_remote_io`) into its sandbox. It comes before the sandbox is given to
 * the job's account, under which something else may run that would put a link in the way.
 */
export function placeRemoteIo({ dir, record }: Run, helper: NativeHelper | undefined): void {
  if (record.spec.remoteIo !== true || helper?.program === undefined) return;
  const cache = join(dir.work, REMOTE_IO_DIR);
  if (!lstatSync(cache, { throwIfNoEntry: false })?.isDirectory()) mkdirSync(cache, { mode: 0o700 });
  // Its account need not be able to reach ours.
  if (record.user) copyFileSync(helper.program, copyIn(cache), constants.COPYFILE_EXCL);
}

function copyIn(cache: string): string {
  return join(cache, 'gryphus-remote-io');
}

/** The command that starts a job under the programs of native/ that it needs. */
export function helped(
  run: Run,
  placed: PlacedJob,
  {
    checkpoints,
    remoteIo,
  }: { readonly checkpoints: CheckpointEngines | undefined; readonly remoteIo: NativeHelper | undefined },
): PlacedJob {
  return withRemoteIo(run, checkpointed(run, placed, checkpoints), remoteIo);
}

/** The command that starts a job whose calls about files at home are answered from there (`want_remote_io`). */
function withRemoteIo(run: Run, placed: PlacedJob, helper: NativeHelper | undefined): PlacedJob {
  const { dir, record } = run;
  if (record.spec.remoteIo !== true) return placed;
  if (helper?.program === undefined || placed.chirp !== true || !(dir instanceof AttemptDir))
    throw new GryphusError('output-missing', 'its worker has no working gryphus-remote-io');
  if (record.spec.container) throw new GryphusError('output-missing', 'want_remote_io does not work in a container');
  const cache = join(dir.work, REMOTE_IO_DIR);
  const program = record.user ? copyIn(cache) : helper.program;
  const ad = jobAdOf(run);
  const iwd = readString({ get: (name) => ad[name] ?? undefined }, 'Iwd');
  const command = [
    program,
    'run',
    '--config',
    join(dir.work, CHIRP_CONFIG),
    '--cache',
    cache,
    '--',
    ...(placed.command ?? [placed.program, ...record.spec.args]),
  ];
  return { ...placed, command, ...(iwd === undefined ? {} : { submitDir: iwd }) };
}
