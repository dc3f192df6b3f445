import { factsOf, loadOf, type ProcessFacts, processes, processesOf } from '../host/processes.ts';
import { livingOfStranger } from './last-of.ts';
import { newFiles } from './results.ts';
import type { Run } from './run.ts';
import { watchedPiece } from './watched-files.ts';
import type { FromCentralManager, FromWorker, OutputFile } from '../wire/wire.ts';

/** If there are more new files than this, they are listed only on request. */
const MANY_FILES = 50;
/** The most sizes in one message. */
const NAMES_AT_ONCE = 2000;

/** The message that reports a run's current state; `undefined` while it is being staged. */
export function newsOf(run: Run): { readonly message: FromWorker; readonly bytes?: Buffer } | undefined {
  if (run.phase === 'running' && run.startedAt !== undefined)
    return { message: { t: 'started', key: run.key, at: run.startedAt } };
  if (run.phase !== 'ended' || !run.ending) return undefined;
  const inline = run.inline();
  const files = filesOf(run);
  return {
    message: {
      t: 'ended',
      key: run.key,
      ending: run.ending,
      ...(inline && { inline: { stdout: inline.stdout, stderr: inline.stderr } }),
      ...(files && { files }),
    },
    ...(inline && { bytes: inline.bytes }),
  };
}

function filesOf(run: Run): OutputFile[] | undefined {
  if (!run.sandboxed) return [];
  try {
    const files = newFiles(run.dir, run.names);
    return files.length <= MANY_FILES ? files : undefined;
  } catch {
    return undefined;
  }
}

/** Sends what was written to the streams that are being followed. */
export function sendNews(runs: Iterable<Run>, say: (message: FromWorker, bytes?: Buffer) => void): void {
  for (const run of runs) {
    if (!run.following || run.phase === 'ended') continue;
    sendSizes(run, say);
    for (const stream of ['stdout', 'stderr'] as const) {
      const offset = run.following[stream];
      const bytes = run.piece(stream, offset);
      if (bytes.length === 0) continue;
      run.following[stream] += bytes.length;
      say({ t: 'chunk', key: run.key, stream, offset }, bytes);
    }
  }
}

/** Sends the sizes of watched files that have changed. */
function sendSizes({ key, watched }: Run, say: (message: FromWorker) => void): void {
  const news = watched?.news(() => performance.now());
  if (!news || (news.files.length === 0 && !news.isFirst)) return;
  for (let from = 0; from === 0 || from < news.files.length; from += NAMES_AT_ONCE) {
    const files = news.files.slice(from, from + NAMES_AT_ONCE);
    say({ t: 'sizes', key, files, isFirst: news.isFirst && from === 0 });
  }
}

/** Sends what is wanted of files that are watched, one by one; nothing of what is not watched. */
export async function sendPieces(
  run: Run | undefined,
  { key, files }: Extract<FromCentralManager, { t: 'want' }>,
  say: (message: FromWorker, bytes: Buffer) => void,
): Promise<void> {
  for (const { name, offset } of files) {
    const isWatched = run?.watched?.knows(name) === true;
    say({ t: 'piece', key, name, offset }, isWatched ? await watchedPiece(run.dir, name, offset) : Buffer.alloc(0));
  }
}

/** Records each run's peak memory, its processor time and its load; returns the runs that exceed their slot's memory, with what they use. */
export function lookAtMemory(runs: Iterable<Run>): { readonly run: Run; readonly usedMb: number }[] {
  const running = [...runs].filter((run) => run.phase === 'running' || run.phase === 'suspended');
  if (running.length === 0) return [];
  // For runs whose cgroup has memory accounting, no processes need to be examined.
  const known = new Map(running.flatMap((run) => held(run)));
  const others = running.filter(({ key }) => !known.has(key));
  for (const [run, { rssKb, cpuTicks, all }] of others.length === 0 ? [] : usedBy(others)) {
    known.set(run.key, rssKb);
    if (run.group) continue;
    run.cpuSeconds = cpuTicks / TICKS;
    run.load = loadOfAll(run, all);
  }
  return running.flatMap((run) => {
    const rssKb = known.get(run.key) ?? 0;
    if (rssKb > run.peakRssKb) {
      run.peakRssKb = rssKb;
      run.dir.noteMemory(rssKb);
    }
    return rssKb > run.record.size.memoryMb * 1024 ? [{ run, usedMb: Math.ceil(rssKb / 1024) }] : [];
  });
}

/** Clock ticks per second in /proc (USER_HZ, 100 with every kernel that this runs on). */
const TICKS = 100;

function held(run: Run): [string, number][] {
  const usage = run.group?.usage();
  if (usage) run.cpuSeconds = usage.userSeconds + usage.systemSeconds;
  if (run.group) run.load = loadOfAll(run, factsOf(run.group.pids()));
  const kb = run.joinedLate ? undefined : usage?.heldKb;
  return kb === undefined ? [] : [[run.key, kb]];
}

/** What is suspended is no load, though processes in a frozen cgroup look as if they waited for a disk. */
function loadOfAll({ phase }: Run, all: readonly ProcessFacts[]): number {
  return phase === 'suspended' ? 0 : all.reduce((sum, one) => sum + loadOf(one), 0);
}

interface Used {
  readonly rssKb: number;
  readonly cpuTicks: number;
  readonly all: readonly ProcessFacts[];
}

const NONE: Used = { rssKb: 0, cpuTicks: 0, all: [] };

/** The runs' processes, with their resident memory, in KB, and processor time. */
function usedBy(runs: readonly Run[]): [Run, Used][] {
  // A container's processes are in other sessions, and are identified by the key in their environment.
  const contained = new Set<string>(runs.flatMap((run) => (run.record.spec.container ? [run.key] : [])));
  const keys = new Map<number, string>(processesOf(contained).map(({ pid, key }) => [pid, key]));
  // A stranger may have left its session.
  for (const run of runs.filter(({ record }) => record.user?.stranger)) {
    contained.add(run.key);
    for (const { pid } of livingOfStranger(run)) keys.set(pid, run.key);
  }
  const sums = new Map<number | string, Used>();
  const shells = new Set(runs.map(({ shell }) => shell?.pid));
  for (const one of processes()) {
    const whose = keys.get(one.pid) ?? one.session;
    if (one.pid === whose || (typeof whose === 'number' && !shells.has(whose))) continue;
    const { rssKb, cpuTicks, all } = sums.get(whose) ?? NONE;
    sums.set(whose, { rssKb: rssKb + one.rssKb, cpuTicks: cpuTicks + one.cpuTicks, all: [...all, one] });
  }
  return runs.map((run) => {
    const whose = contained.has(run.key) ? run.key : run.shell?.pid;
    return [run, whose === undefined ? NONE : (sums.get(whose) ?? NONE)];
  });
}
