import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GryphusError } from '../../errors.ts';
import { CHECKPOINT_IMAGE } from '../../staging/asked-for.ts';
import { idsOf, imageIn, linkImage, readImageHeader } from '../../staging/image.ts';
import type { CheckpointHelper } from '../host/checkpoint-helper.ts';
import { sentence } from '../host/probe-program.ts';
import { childrenOf, KEY_VARIABLE } from '../host/processes.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { processIdentity } from '../../util/process-identity.ts';
import type { RunSpec } from '../wire/wire.ts';
import { CHIRP_CONFIG } from '../../site/chirp.ts';
import { AD_FILES } from './ad-files.ts';
import { AttemptDir } from './attempt-dir.ts';
import type { PlacedJob } from './job-script.ts';
import { keepsRecord } from './last-of.ts';
import type { Run } from './run.ts';
import { evicted } from './stopping.ts';
import { wantsCheckpoint } from './wants-checkpoint.ts';

/** Names in a sandbox that belong to the attempt, not to the job. */
const OURS = [CHECKPOINT_IMAGE, CHIRP_CONFIG, ...Object.values(AD_FILES)];
/** What prevents a checkpoint often passes: a lock, a child that has just ended. */
const TRIES = 10;
const AGAIN_MS = 100;

/**
 * The image of a run: `saved/image` in its directory, whole or not there. It has the processes, the files of the sandbox
 * and the length of the streams, so it is a state to go on from whatever the job did afterwards.
 */
const imageOf = (dir: AttemptDir) => imageIn(join(dir.path, 'saved'));
/** The image from which the attempt went on, out of the job's reach: the next one has only what has changed. */
const baseIn = (dir: AttemptDir) => imageIn(join(dir.path, 'base'));
/** Where an image enters and leaves the sandbox. */
const sentIn = (dir: AttemptDir) => join(dir.work, CHECKPOINT_IMAGE);
/** Written by the helper: the job was restored, or why it was not. */
const reportOf = (dir: AttemptDir) => join(dir.path, 'restored');

/** What the helper was doing may have ended the job with it. */
const NAME = 'gryphus-helper';
const KILLED = 'gryphus-helper was killed';
const KILL = 9;

/** How a checkpoint went: `undefined`, or why there is none. */
type Trouble = string | undefined;

/** From now on it can be checkpointed. A run that shares its place with others cannot. */
export function equipToSave(run: Run, helper: CheckpointHelper | undefined): void {
  if (helper && run.dir instanceof AttemptDir) run.save = (kill) => checkpoint(run, helper, kill);
}

/** Looks for what a run that has ended saved, or was to go on from. */
export function takeCheckpoint(run: Run, helper: CheckpointHelper | undefined): void {
  if (isRestorerKilled(run)) run.decided ??= evicted('gryphus-helper, which restored it, was killed', 'policy');
  const how = run.decided?.how;
  const mayGoOn = how?.kind === 'by-site' && how.cause === 'preempted';
  if (mayGoOn && helper?.program !== undefined && takeImage(run)) run.saved = helper.platform;
  if (!run.decided) run.unrestored = unrestored(run);
}

/** Writes a run's image, and ends the run with it (`kill`) or lets it go on. */
async function checkpoint(run: Run, { program }: CheckpointHelper, kill: boolean): Promise<Trouble> {
  const { dir, record, shell } = run;
  if (program === undefined) return 'its worker has no working gryphus-helper';
  if (!(dir instanceof AttemptDir) || !shell) return 'it has no directory of its own';
  if (record.spec.container) return 'it runs in a container';
  if (record.user) return 'it runs under an account of its own';
  crashPoint('checkpoint.before-save');
  mkdirSync(join(dir.path, 'saved'), { recursive: true, mode: 0o700 });
  // The first is based on what it went on from, the others on the one before.
  const base = !existsSync(imageOf(dir)) && existsSync(baseIn(dir)) ? ['--base', baseIn(dir)] : [];
  let trouble: Trouble = 'its program has not started';
  for (let turn = 0; turn < TRIES && run.phase !== 'ended'; turn++) {
    if (turn > 0) await delay(AGAIN_MS);
    const waiter = childrenOf(shell.pid).find((pid) => keepsRecord(processIdentity(pid)));
    if (waiter === undefined || dir.exit()) continue;
    trouble = await helped(program, [
      'dump',
      '--below',
      String(waiter),
      '--sandbox',
      dir.work,
      '--to',
      imageOf(dir),
      ...base,
      '--stdin',
      dir.stdin,
      '--stdout',
      dir.stream('stdout'),
      '--stderr',
      dir.stream('stderr'),
      ...OURS.flatMap((name) => ['--skip', name]),
      ...(kill ? ['--kill'] : []),
    ]);
    if (trouble === undefined) {
      crashPoint('checkpoint.saved');
      return undefined;
    }
    if (trouble === KILLED) run.brokenSave = true;
    if (run.brokenSave) break;
  }
  return trouble;
}

function helped(program: string, args: readonly string[]): Promise<Trouble> {
  return new Promise((resolve) =>
    execFile(program, args, { encoding: 'utf8' }, (error, _, stderr) =>
      resolve(error === null ? undefined : error.signal ? KILLED : sentence(stderr, NAME) || error.message),
    ),
  );
}

/**
 * Of an evicted run: puts its image among its results and cuts its streams to what the image knows of, so that what is
 * written again is not there twice. False if it has none. Idempotent.
 */
function takeImage({ dir }: Run): boolean {
  if (!(dir instanceof AttemptDir) || !existsSync(imageOf(dir))) return false;
  const { stdout, stderr } = readImageHeader(imageOf(dir));
  cut(dir.stream('stdout'), stdout);
  cut(dir.stream('stderr'), stderr);
  // Home has what it sent.
  const known: ReadonlySet<string> = existsSync(baseIn(dir)) ? idsOf(baseIn(dir)) : new Set<string>();
  // Whatever the job has put there.
  rmSync(sentIn(dir), { recursive: true, force: true });
  linkImage(imageOf(dir), imageIn(sentIn(dir)), known);
  crashPoint('checkpoint.taken');
  return true;
}

function cut(path: string, bytes: number): void {
  if (existsSync(path)) truncateSync(path, bytes);
}

/** Whether an attempt goes on from an image. */
function isRestored({ inputs }: RunSpec): boolean {
  return inputs.some(({ name }) => name === imageIn(CHECKPOINT_IMAGE));
}

/** The command that starts a job so that it can be checkpointed, or goes on from its image. */
export function checkpointed(run: Run, placed: PlacedJob, helper: CheckpointHelper | undefined): PlacedJob {
  const program = helper?.program;
  const { dir, record } = run;
  if (program === undefined && isRestored(record.spec))
    throw new GryphusError('output-missing', 'its worker has no working gryphus-helper to restore its checkpoint');
  if (program === undefined || !(dir instanceof AttemptDir)) return placed;
  if (isRestored(record.spec)) {
    crashPoint('checkpoint.before-restore');
    if (existsSync(sentIn(dir))) renameSync(sentIn(dir), join(dir.path, 'base'));
    const from = ['restore', '--from', baseIn(dir), '--sandbox', dir.work];
    const command = [
      program,
      ...from,
      '--report',
      reportOf(dir),
      '--environment',
      `${KEY_VARIABLE}=${run.key}`,
      ...OURS.flatMap((name) => ['--skip', name]),
    ];
    return { ...placed, command };
  }
  if (!wantsCheckpoint(run)) return placed;
  return { ...placed, command: [program, 'run', placed.program, ...record.spec.args] };
}

/** Whether the helper that restored an attempt, and waits for its end, was killed: its job with it. */
function isRestorerKilled({ dir, record }: Run): boolean {
  const how = dir.exit()?.how;
  if (!(dir instanceof AttemptDir) || !isRestored(record.spec) || how?.kind !== 'signaled' || how.signal !== KILL)
    return false;
  return !reportIn(dir).split('\n').includes('ended');
}

function reportIn(dir: AttemptDir): string {
  try {
    return readFileSync(reportOf(dir), 'utf8');
  } catch {
    return '';
  }
}

/** Why an attempt that has ended was never restored; `undefined` if it was, or had nothing to be restored from. */
function unrestored({ dir, record }: Run): Trouble {
  if (!(dir instanceof AttemptDir) || !isRestored(record.spec)) return undefined;
  try {
    const said = readFileSync(reportOf(dir), 'utf8');
    return said.startsWith('restored\n') ? undefined : sentence(said, NAME) || 'gryphus-helper ended without a word';
  } catch {
    return 'gryphus-helper could not be started';
  }
}
