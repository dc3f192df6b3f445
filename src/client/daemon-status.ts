import { refuseClosed } from '../util/private-file.ts';
import { ownBuild } from '../config/build.ts';
import { daemonsOnDisk, forgetDaemon } from '../config/daemon-files.ts';
import { loadSettings } from '../config/settings.ts';
import type { Paths } from '../config/paths.ts';
import { GryphusError } from '../errors.ts';
import { centralManagerOf, workerOf } from '../pool/host/pid-files.ts';
import { failureOf, type PoolPlaces, poolPlaces } from '../pool/host/places.ts';
import { hostElsewhere, openQueue, type Queue, queueRepairs, serverState, stopRedis } from '../queue/api.ts';
import { DAEMONS, UNSENT_MAIL, WHOLE } from '../queue/tables.ts';
import { owedLogs } from '../queue/owed-logs.ts';
import { COMMAND_SERVER, type Daemon, MANAGER, SCHEDULER, WEB } from '../util/daemon.ts';
import { isAlive, type ProcessIdentity } from '../util/process-identity.ts';
import { isOlderState } from '../util/state-version.ts';
import { runningScheduler } from './daemon.ts';
import type { DaemonStatus, DownOptions, Totals } from './types.ts';

/** How long a daemon may take for an orderly end, in milliseconds. Without its queue it has nothing to finish. */
const PATIENCE_MS = 20_000;
const PATIENCE_WITHOUT_QUEUE_MS = 2_000;
/** The same of a worker, which may be writing checkpoints. */
const PATIENCE_OF_WORKER_MS = 660_000;

/** How long status shows that mail could not be sent, if none was to be sent since; milliseconds. */
const MAIL_SHOWN_MS = 7 * 86_400_000;

type Manager = Daemon & { readonly identity: string };

export async function daemonStatus(queue: Queue, paths: Paths, totals: () => Promise<Totals>): Promise<DaemonStatus> {
  const scheduler = await runningScheduler(queue);
  const settings = await loadSettings(paths);
  const userLogs = await owedLogs(queue.kv);
  const unsentMail = await UNSENT_MAIL.get(queue.kv, WHOLE);
  const poolTrouble = failureOf(poolPlaces(paths).clientSocket);
  return {
    ...ofScheduler(scheduler),
    home: paths.stateDir,
    redis: (process.env['REDIS_URL'] ?? settings['redis.url']) === undefined ? 'up' : 'external',
    managers: (await managersOf(queue)).map(shown),
    totals: await totals(),
    ...(userLogs.count > 0 ? { userLogs } : {}),
    ...(unsentMail && unsentMail.at > Date.now() - MAIL_SHOWN_MS ? { unsentMail } : {}),
    ...(await repairsOf(paths)),
    ...(poolTrouble === undefined ? {} : { poolTrouble }),
  };
}

function ofScheduler(
  scheduler: Daemon | undefined,
): Pick<DaemonStatus, 'running' | 'pid' | 'since' | 'build' | 'ownBuild'> {
  if (!scheduler) return { running: false };
  const { pid, since, build } = scheduler;
  const own = ownBuild();
  const same = build?.version === own.version && build.built === own.built;
  return { running: true, pid, since, ...(build ? { build } : {}), ...(same ? {} : { ownBuild: own }) };
}

/** What can be known without the queue. */
export async function statusWithoutQueue(paths: Paths): Promise<DaemonStatus> {
  const external = await isExternal(paths);
  const host = await hostElsewhere(paths.stateDir);
  const { scheduler, managers } = host === undefined ? onDisk(paths) : { scheduler: undefined, managers: [] };
  return {
    ...ofScheduler(scheduler),
    ...(host === undefined ? {} : { host }),
    home: paths.stateDir,
    redis: external ? 'external' : (await serverState(paths)) === 'absent' ? 'down' : 'silent',
    managers: managers.map(shown),
    ...(external ? {} : await repairsOf(paths)),
  };
}

/** How long status shows repairs, milliseconds. */
const SHOWN_MS = 30 * 86_400_000;

async function repairsOf({ stateDir }: Paths): Promise<Pick<DaemonStatus, 'repairs'>> {
  const recent = (await queueRepairs(stateDir)).filter(({ at }) => at > Date.now() - SHOWN_MS);
  const last = recent.at(-1);
  return last ? { repairs: { count: recent.length, at: last.at, message: last.message } } : {};
}

/**
 * Ends all daemons of a state directory in an orderly way, the private Redis last. `vacate`: also this machine's worker, which vacates its
 * jobs.
 */
export async function endDaemons(
  paths: Paths,
  { vacate = false }: Pick<DownOptions, 'vacate'> = {},
): Promise<DaemonStatus> {
  refuseClosed(paths.stateDir);
  const host = await hostElsewhere(paths.stateDir);
  if (host !== undefined) throw notHere(paths.stateDir, host);
  const settings = await loadSettings(paths);
  const external = await isExternal(paths);
  const options = { stateDir: paths.stateDir, socketDir: paths.socketDir };
  const down = { running: false, home: paths.stateDir, redis: external ? 'external' : 'down', managers: [] } as const;
  const older = isOlderState(paths.stateDir) && daemonsOnDisk(paths).length > 0;
  const open = () => openQueue({ ...options, url: settings['redis.url'], start: 'never' });
  // A queue of another version cannot be read, but its daemons can be ended.
  const queue = await (older ? Promise.resolve(undefined) : open()).catch((thrown: unknown) => {
    if (thrown instanceof GryphusError && ['queue-unavailable', 'state-version'].includes(thrown.code))
      return undefined;
    throw thrown;
  });
  const patience = older ? PATIENCE_MS : PATIENCE_WITHOUT_QUEUE_MS;
  let vacating: Promise<void> | undefined;
  const told = () => {
    if (vacate) vacating = endWorker(poolPlaces(paths));
  };
  // They go first, or they would start the Scheduler again.
  const first = daemonsOnDisk(paths).filter(({ name }) => name === WEB || name === COMMAND_SERVER);
  await Promise.all(first.map((one) => endProcess(one, PATIENCE_WITHOUT_QUEUE_MS)));
  if (queue) {
    try {
      const scheduler = await runningScheduler(queue);
      if (scheduler) await endProcess(scheduler, PATIENCE_MS, told);
      // A Redis that the Scheduler had started again just before has ended with it.
      const managers = await managersOf(queue).catch((thrown: unknown) => {
        if (thrown instanceof GryphusError && thrown.code === 'queue-unavailable') return onDisk(paths).managers;
        throw thrown;
      });
      for (const manager of managers) await endProcess(manager, PATIENCE_MS);
    } finally {
      await queue.close();
    }
  } else {
    // The Scheduler goes first, or it would restart its Redis.
    const { scheduler, managers } = onDisk(paths);
    if (scheduler) await endProcess(scheduler, patience, told);
    await Promise.all(managers.map((manager) => endProcess(manager, patience)));
  }
  // One that had to be killed must not be taken for one that crashed and is wanted back.
  forgetDaemon(paths, SCHEDULER);
  // A killed Scheduler may have left its central manager running.
  const centralManager = centralManagerOf(poolPlaces(paths));
  if (centralManager) await endProcess(centralManager, PATIENCE_MS);
  if (vacate) vacating ??= endWorker(poolPlaces(paths));
  if (!external) await stopRedis(options);
  await vacating;
  return down;
}

/** What its files say of processes is about those of that machine. */
function notHere(stateDir: string, host: string): GryphusError {
  return new GryphusError(
    'already-running',
    `The state directory ${stateDir} is used on host ${host}, or was when that machine died; nothing of it runs on this one.`,
    {
      suggestions: [
        `End it there: gryphus down`,
        'If that machine is dead, there is nothing to end; gryphus up takes over here.',
      ],
    },
  );
}

async function isExternal(paths: Paths): Promise<boolean> {
  return (process.env['REDIS_URL'] ?? (await loadSettings(paths))['redis.url']) !== undefined;
}

function onDisk(paths: Paths): { readonly scheduler: Daemon | undefined; readonly managers: readonly Manager[] } {
  const all = daemonsOnDisk(paths);
  return {
    scheduler: all.find(({ name }) => name === SCHEDULER),
    managers: all.flatMap(({ name, ...daemon }) =>
      name.startsWith(MANAGER) ? [{ ...daemon, identity: name.slice(MANAGER.length) }] : [],
    ),
  };
}

function shown({ identity, pid, since }: Manager): DaemonStatus['managers'][number] {
  return { identity, pid, since };
}

async function managersOf(queue: Queue): Promise<Manager[]> {
  return (await DAEMONS.list(queue.kv))
    .filter(({ key }) => key.startsWith(MANAGER))
    .map(({ key, value }) => ({ identity: key.slice(MANAGER.length), ...value }))
    .filter(isAlive);
}

/** Ends this machine's worker; by then the Scheduler starts no central manager, which would start another worker. */
async function endWorker(places: PoolPlaces): Promise<void> {
  const centralManager = centralManagerOf(places);
  if (centralManager) await endProcess(centralManager, PATIENCE_MS);
  const worker = workerOf(places.workerDir);
  if (worker) await endProcess(worker, PATIENCE_OF_WORKER_MS);
}

/** `onTold`: it has the signal. */
async function endProcess(daemon: ProcessIdentity, patienceMs: number, onTold?: () => void): Promise<void> {
  const deadline = Date.now() + patienceMs;
  signal(daemon.pid, 'SIGTERM');
  onTold?.();
  while (isAlive(daemon)) {
    if (Date.now() > deadline) signal(daemon.pid, 'SIGKILL');
    await new Promise((done) => setTimeout(done, 30));
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process is gone.
  }
}
