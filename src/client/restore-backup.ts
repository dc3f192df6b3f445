import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { damaged } from '../backup/container.ts';
import { type Unpacked, unpack } from '../backup/unpack.ts';
import { ensureStateDirs, loadPaths, type Paths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { loadSites } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { holdAttributes } from '../job/hold.ts';
import type { JobId } from '../job/ids.ts';
import { isEnd, LIFE } from '../job/life.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { openQueue, placeSnapshot, type Queue, stopRedis } from '../queue/api.ts';
import { crashPoint } from '../util/crash-point.ts';
import { flushTree } from '../util/flush-tree.ts';
import { markDirectory } from '../util/marked-dir.ts';
import { oneLine } from '../util/plain-text.ts';
import { ensurePrivateDir, flushDir, makeDirs, writeWhole } from '../util/private-file.ts';
import { isAlive } from '../util/process-identity.ts';
import { shellPath } from '../util/shell-quote.ts';
import type { Restored, RestoreRequest } from './backup.ts';
import { queuePlace } from './daemon.ts';
import { recover } from './recover.ts';

/** In HTCondor's codes for a hold by the user; the sub code tells these jobs from others. */
const HELD_BY_US = 1;
const RESTORED = 1023;
const CHUNK = 1000;
/** The directories in which the state is prepared have the id of the process in their names. */
const BEGUN = '.restoring-';
const LEFTOVER = /^\.restoring-([0-9]{1,10})-/;
/** What may be in a state directory without a queue: commands leave it there before the first job. */
const NO_QUEUE = /^(?:run|log|spool|daemons|state-id)$/;

/**
 * The state is prepared beside its place and renamed into it, so that there is never half of it. From then on, sites refuse
 * the former state directory; they tell what happened since the backup.
 */
export async function restoreBackup(paths: Paths, request: RestoreRequest): Promise<Restored> {
  mustBeFree(paths);
  const beside = dirname(paths.stateDir);
  makeDirs(beside);
  await removeLeftovers(beside);
  const dir = mkdtempSync(join(beside, `${BEGUN}${process.pid}-`));
  try {
    const found = await unpack(request.file, dir, request.passphrase);
    const { at, host, agent, stateDir } = found.manifest;
    const { kept, placed } = placeConfiguration(found.configDir, paths.configDir);
    crashPoint('restore.unpacked');
    let held: number;
    try {
      held = await prepare(found, paths, request.file);
      crashPoint('restore.prepared');
      mustBeFree(paths);
    } catch (thrown) {
      for (const file of placed) rmSync(file, { force: true });
      throw thrown;
    }
    rmSync(paths.stateDir, { recursive: true, force: true });
    // From here on, sites delete on its word.
    await flushTree(found.stateDir);
    renameSync(found.stateDir, paths.stateDir);
    flushDir(beside);
    crashPoint('restore.placed');
    ensureStateDirs(paths);
    const recovery = await recover(paths, { ...request, sites: [], agent });
    return {
      ...recovery,
      at,
      host: oneLine(host),
      held,
      subCode: RESTORED,
      kept,
      ...(stateDir === paths.stateDir ? {} : { movedFrom: oneLine(stateDir) }),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** What a restore that was killed left: a whole copy of the state, perhaps with its Redis. */
async function removeLeftovers(beside: string): Promise<void> {
  for (const name of readdirSync(beside)) {
    const pid = Number(LEFTOVER.exec(name)?.[1]);
    if (!(pid > 1) || isAlive({ pid, started: '' })) continue;
    const dir = join(beside, name);
    await stopRedis(loadPaths({ ...process.env, GRYPHUS_HOME: dir }));
    rmSync(dir, { recursive: true, force: true });
  }
}

function mustBeFree({ stateDir }: Paths): void {
  const there = existsSync(stateDir) ? readdirSync(stateDir).filter((name) => !NO_QUEUE.test(name)) : [];
  if (there.length === 0) {
    if (existsSync(stateDir)) mustBeReplaceable(stateDir);
    return;
  }
  throw new GryphusError('conflict', `There is a queue here already, in ${stateDir}.`, {
    suggestions: [
      `Move it away: gryphus down && mv ${shellPath(stateDir)} ${shellPath(`${stateDir}.old`)}`,
      'Or put the backup back elsewhere: GRYPHUS_HOME=~/restored gryphus restore …',
    ],
  });
}

/** A link is not followed by the daemons, and a mount point cannot be replaced. */
function mustBeReplaceable(stateDir: string): void {
  ensurePrivateDir(stateDir);
  if (statSync(stateDir).dev === statSync(dirname(stateDir)).dev) return;
  throw new GryphusError('conflict', `${stateDir} is a mount point, which the restored directory cannot replace.`, {
    suggestions: ['Mount its parent, or restore into a directory there: GRYPHUS_HOME=DIR gryphus restore …'],
  });
}

interface PlacedConfiguration {
  /** Files that were here and differ: they stay. */
  readonly kept: readonly string[];
  readonly placed: readonly string[];
}

function placeConfiguration(from: string, to: string): PlacedConfiguration {
  const kept: string[] = [];
  const placed: string[] = [];
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const source = join(entry.parentPath, entry.name);
    const place = join(to, source.slice(from.length));
    if (!existsSync(place)) {
      makeDirs(dirname(place));
      writeWhole(place, readFileSync(source), statSync(source).mode & 0o777);
      placed.push(place);
    } else if (!readFileSync(source).equals(readFileSync(place))) kept.push(place);
  }
  return { kept, placed };
}

/** Everything that must be so before the first daemon sees the queue. Returns how many jobs are held. */
async function prepare({ stateDir, rdb, manifest }: Unpacked, paths: Paths, file: string): Promise<number> {
  // Sockets need a short path, which this directory chooses as any other.
  const here = { ...loadPaths({ ...process.env, GRYPHUS_HOME: dirname(stateDir) }), configDir: paths.configDir };
  mkdirSync(here.redisDir, { mode: 0o700 });
  await placeSnapshot(rdb, stateDir);
  ensureStateDirs(here);
  const settings = await loadSettings(paths);
  const queue = await openQueue({ ...queuePlace(here, settings), start: 'if-needed' }).catch((thrown: unknown) => {
    if (!(thrown instanceof GryphusError) || thrown.code !== 'queue-unavailable') throw thrown;
    const why = 'Redis cannot read its queue; it is damaged, or was saved by a later Redis than the one here';
    throw damaged(file, `${why} (${thrown.message})`);
  });
  let held: number;
  try {
    if (queue.agent !== manifest.agent) throw damaged(file, 'its queue is that of another agent');
    crashPoint('restore.reading');
    await queue.cutHistory();
    held = await holdWhatMayHaveRun(queue, paths, manifest.at);
    // Whatever state directory the agent had: this one is another.
    await queue.takeOver(queue.agent, queue.holder.epoch + 1);
  } finally {
    await queue.close();
    await stopRedis(here);
  }
  for (const name of ['socket', 'redis.conf', 'redis.lock', 'redis.log'])
    rmSync(join(here.redisDir, name), { force: true });
  for (const name of ['run', 'log', 'state-id', 'queue-mark', 'place', 'in-use'])
    rmSync(join(stateDir, name), { recursive: true, force: true });
  markDirectory(stateDir);
  const pool = poolPlaces(here);
  if (existsSync(pool.journal)) writeWhole(pool.restored, '');
  return held;
}

/**
 * A site behind a connection remembers how far the queue was, and its jobs are held only if something happened since
 * (GridManager). Nothing remembers that of the pool, of this machine, of GRAM services, and of jobs that had no site yet.
 */
async function holdWhatMayHaveRun(queue: Queue, paths: Paths, at: number): Promise<number> {
  const remembers = new Set<string>();
  for (const [name, { batch, target }] of await loadSites(paths))
    if (batch !== 'pool' && target.kind !== 'gram' && target.kind !== 'local') remembers.add(name);
  const when = new Date(at).toISOString().replace(/\.\d+Z$/, 'Z');
  const set = holdAttributes(
    `Restored from a backup of ${when}; it may have run since. A release runs it again.`,
    HELD_BY_US,
    RESTORED,
  );
  let held = 0;
  const hold = async (ids: readonly JobId[]) => {
    const answers = await queue.transitionMany(ids.map((id) => ({ id, event: 'hold', set })));
    held += answers.filter(({ ok }) => ok).length;
  };
  let some: JobId[] = [];
  for await (const { id, state, site } of queue.query()) {
    if (isEnd(state) || LIFE[state].shows === 'held' || remembers.has(site)) continue;
    some.push(id);
    if (some.length === CHUNK) await hold(some.splice(0));
  }
  await hold(some);
  return held;
}
