import { existsSync, mkdirSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GryphusError } from '../../errors.ts';
import { CHECKPOINT_ENGINES, type CheckpointEngineName, engineNamed } from '../../job/checkpoint-engines.ts';
import { readString } from '../../job/values.ts';
import { CHECKPOINT_IMAGE } from '../../staging/asked-for.ts';
import { idsOf, imageIn, linkImage, readImageHeader } from '../../staging/image.ts';
import { crashPoint } from '../../util/crash-point.ts';
import { processIdentity } from '../../util/process-identity.ts';
import { childrenOf } from '../host/processes.ts';
import type { RunSpec } from '../wire/wire.ts';
import { AttemptDir } from './attempt-dir.ts';
import { baseIn, type CheckpointEngine, type EngineJob, imageOf, reportIn } from './engines/engine.ts';
import type { CheckpointEngines } from './engines/engines.ts';
import { jobAdOf } from './job-ad-of.ts';
import type { PlacedJob } from './job-script.ts';
import { keepsRecord } from './last-of.ts';
import type { Run } from './run.ts';
import { evicted } from './stopping.ts';
import { wantsCheckpoint } from './wants-checkpoint.ts';

/** What prevents a checkpoint often passes: a lock, a child that has just ended. */
const TRIES = 10;
const AGAIN_MS = 100;
/** Where an image enters and leaves the sandbox. */
const sentIn = (dir: AttemptDir) => join(dir.work, CHECKPOINT_IMAGE);
const KILL = 9;

/** How a checkpoint went: `undefined`, or why there is none. */
type Trouble = string | undefined;

/** From now on it can be checkpointed. A run that shares its place with others cannot. */
export function equipToSave(run: Run, engines: CheckpointEngines | undefined): void {
  if (engines && run.dir instanceof AttemptDir) run.save = (kill) => checkpoint(run, engines, kill);
}

/** Looks for what a run that has ended saved, or was to go on from. */
export function takeCheckpoint(run: Run, engines: CheckpointEngines | undefined): void {
  if (isRestorerKilled(run)) run.decided ??= evicted('gryphus-helper, which restored it, was killed', 'policy');
  const how = run.decided?.how;
  const mayGoOn = how?.kind === 'by-site' && how.cause === 'preempted';
  const { dir } = run;
  if (mayGoOn && dir instanceof AttemptDir && existsSync(imageOf(dir))) {
    const engine = engines?.named(engineOf(run));
    if (typeof engine === 'object') {
      takeImage(dir);
      run.saved = engine.platform;
    }
  }
  if (!run.decided) run.unrestored = unrestored(run, engines);
}

/** Which engine its job has chosen. */
function engineOf(run: Run): CheckpointEngineName {
  const ad = jobAdOf(run);
  const word = readString({ get: (name) => ad[name] ?? undefined }, 'CheckpointEngine');
  return (word === undefined ? undefined : engineNamed(word)) ?? CHECKPOINT_ENGINES[0];
}

/** Writes a run's image, and ends the run with it (`kill`) or lets it go on. */
async function checkpoint(run: Run, engines: CheckpointEngines, kill: boolean): Promise<Trouble> {
  const { dir, record, shell } = run;
  const engine = engines.named(engineOf(run));
  if (typeof engine === 'string') return `its worker cannot do that: ${engine}`;
  if (!(dir instanceof AttemptDir) || !shell) return 'it has no directory of its own';
  if (record.spec.container) return 'it runs in a container';
  if (record.user) return 'it runs under an account of its own';
  crashPoint('checkpoint.before-save');
  mkdirSync(join(dir.path, 'saved'), { recursive: true, mode: 0o700 });
  let trouble: Trouble = 'its program has not started';
  for (let turn = 0; turn < TRIES && run.phase !== 'ended'; turn++) {
    if (turn > 0) await delay(AGAIN_MS);
    if (dir.exit()) return 'its program has ended';
    const waiter = childrenOf(shell.pid).find((pid) => keepsRecord(processIdentity(pid)));
    if (waiter === undefined) continue;
    const dumped = await engine.dump(asEngineSees(run, dir), waiter, kill);
    trouble = dumped.trouble;
    if (trouble === undefined) {
      crashPoint('checkpoint.saved');
      return undefined;
    }
    if (dumped.isBroken === true) run.brokenSave = true;
    if (run.brokenSave) break;
  }
  return trouble;
}

function asEngineSees({ key, record }: Run, dir: AttemptDir): EngineJob {
  return { key, dir, args: record.spec.args };
}

/**
 * Of an evicted run: puts its image among its results and cuts its streams to what the image knows of, so that what is
 * written again is not there twice. Idempotent.
 */
function takeImage(dir: AttemptDir): void {
  const { stdout, stderr } = readImageHeader(imageOf(dir));
  cut(dir.stream('stdout'), stdout);
  cut(dir.stream('stderr'), stderr);
  // Home has what it sent.
  const known: ReadonlySet<string> = existsSync(baseIn(dir)) ? idsOf(baseIn(dir)) : new Set<string>();
  // Whatever the job has put there.
  rmSync(sentIn(dir), { recursive: true, force: true });
  linkImage(imageOf(dir), imageIn(sentIn(dir)), known);
  crashPoint('checkpoint.taken');
}

function cut(path: string, bytes: number): void {
  if (existsSync(path)) truncateSync(path, bytes);
}

/** Whether an attempt goes on from an image. */
function isRestored({ inputs }: RunSpec): boolean {
  return inputs.some(({ name }) => name === imageIn(CHECKPOINT_IMAGE));
}

/** The command that starts a job so that it can be checkpointed, or goes on from its image. */
export function checkpointed(run: Run, placed: PlacedJob, engines: CheckpointEngines | undefined): PlacedJob {
  const { dir, record } = run;
  const goesOn = isRestored(record.spec);
  if (!(dir instanceof AttemptDir) || (!goesOn && !wantsCheckpoint(run))) return placed;
  const name = engineOf(run);
  const engine = engines?.named(name) ?? 'it has none';
  if (typeof engine === 'string') {
    if (!goesOn) return placed;
    throw new GryphusError('output-missing', `its worker cannot restore checkpoints of the engine ${name}: ${engine}`);
  }
  if (!goesOn) return engine.start(asEngineSees(run, dir), placed);
  crashPoint('checkpoint.before-restore');
  if (existsSync(sentIn(dir))) renameSync(sentIn(dir), join(dir.path, 'base'));
  refuseOthers(baseIn(dir), engine);
  return engine.restore(asEngineSees(run, dir), placed);
}

/** An image is only given to the engine that wrote it. */
function refuseOthers(image: string, { name }: CheckpointEngine): void {
  const { engine } = readImageHeader(image);
  if (engine === name) return;
  throw new GryphusError('output-missing', `its checkpoint was written by the engine ${engine}, not ${name}`);
}

/** Whether the helper that restored an attempt, and waits for its end, was killed: its job with it. */
function isRestorerKilled({ dir, record }: Run): boolean {
  const how = dir.exit()?.how;
  if (!(dir instanceof AttemptDir) || !isRestored(record.spec) || how?.kind !== 'signaled' || how.signal !== KILL)
    return false;
  return !reportIn(dir).split('\n').includes('ended');
}

/** Why an attempt that has ended was never restored; `undefined` if it was, or had nothing to be restored from. */
function unrestored(run: Run, engines: CheckpointEngines | undefined): Trouble {
  const { dir, record } = run;
  if (!(dir instanceof AttemptDir) || !isRestored(record.spec)) return undefined;
  const engine = engines?.named(engineOf(run));
  return typeof engine === 'object' ? engine.unrestored(dir) : undefined;
}
