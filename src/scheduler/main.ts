import { hostname } from 'node:os';
import { join } from 'node:path';
import { ownBuild } from '../config/build.ts';
import { forgetDaemon, noteDaemon, noteRedisUrl } from '../config/daemon-files.ts';
import { type FollowedSettings, followSettings, SiteBook } from '../config/follow.ts';
import { ensureStateDirs, loadPaths, type Paths } from '../config/paths.ts';
import { POOL_SITE } from '../config/sites.ts';
import { SiteChooser } from '../enqueue/site-choice.ts';
import { endOnSignal, outliveReader, runDaemon } from '../util/run-daemon.ts';
import { type Logger, openLog } from '../log.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { endWithState, openQueue, type Queue, stopRedis } from '../queue/api.ts';
import { usePlace } from '../queue/state-place.ts';
import { DAEMONS } from '../queue/tables.ts';
import { type Daemon, MANAGER, SCHEDULER } from '../util/daemon.ts';
import { eachSecond } from '../util/each-second.ts';
import { isAlive, processIdentity } from '../util/process-identity.ts';
import { oneLine } from '../util/plain-text.ts';
import { spreadNet } from '../util/process-net.ts';
import { Alarms } from './alarms.ts';
import { Broker } from './broker.ts';
import { Children } from './children.ts';
import { CredentialWatch } from './credential-watch.ts';
import { DagListener } from './dag-listener.ts';
import { Dependencies } from './dependencies.ts';
import { GlideinKeeper } from './glideins.ts';
import { KeptMark } from './kept-mark.ts';
import { LogListener } from './log-listener.ts';
import { MailListener } from './mail-listener.ts';
import { Outbox } from './outbox.ts';
import { FlockKeeper } from './flock-keeper.ts';
import { PoolKeeper } from './pool-keeper.ts';
import { Scheduler } from './scheduler.ts';
import { freeLease, instanceLock } from './instance-lock.ts';
import { redisPid, UsageKeeper } from './usage-keeper.ts';
import { openUserLogs } from './user-logs/open.ts';
import { ownUser } from '../util/own-user.ts';

/** The history keeps at least the jobs that ended in the last day; seconds. */
const RECENT_SECONDS = 86_400;

/** The Scheduler process. It prints `ready` on standard output when it is running. */
async function main(): Promise<void> {
  const paths = loadPaths();
  ensureStateDirs(paths);
  const followed = await followSettings(paths);
  const { settings } = followed;
  const log = openLog(join(paths.logDir, 'scheduler.log'), settings['log.level'], settings['log.max_size']);
  process.on('warning', ({ message }) => log.warn(message));
  // Before it starts anything that would outlive it.
  const told = new AbortController();
  endOnSignal(
    () => told.abort(),
    (open) => {
      log.warn({ open }, 'ends without waiting any longer');
      forgetDaemon(paths, SCHEDULER);
    },
  );
  let queue: Queue | undefined;
  let isReady = false;
  let unused = false;
  const ready = (): void => {
    isReady = true;
    log.info('ready');
    process.stdout.write('ready\n');
  };
  try {
    queue = await openQueue({
      stateDir: paths.stateDir,
      socketDir: paths.socketDir,
      url: settings['redis.url'],
      server: settings['redis.server'],
      start: 'keep',
      leaving: told.signal,
    });
    unused = await serve({ paths, followed, log, queue, told, ready });
  } catch (thrown) {
    // Redis may have been told the same, and anything that asks it fails.
    if (!told.signal.aborted) throw thrown;
    log.info({ err: thrown }, 'told to end while starting');
  } finally {
    await queue?.close();
  }
  if (!isReady) process.stderr.write('The Scheduler was told to end while it started.\n');
  const own = (process.env['REDIS_URL'] || settings['redis.url']) === undefined;
  if (own && unused && !(await stopRedis({ ...paths, unused: true })))
    log.info('Redis keeps running: a client is connected to it');
  log.info('ended');
}

interface Surroundings {
  readonly paths: Paths;
  readonly followed: FollowedSettings;
  readonly log: Logger;
  readonly queue: Queue;
  /** At a shutdown all are told to end, and one that ended before this process must not be replaced. */
  readonly told: AbortController;
  readonly ready: () => void;
}

/** Runs the Scheduler to its end; whether it ended because nobody needs it, nor its Redis. */
async function serve({ paths, followed, log, queue, told, ready }: Surroundings): Promise<boolean> {
  const { settings, follow, close: closeSettings } = followed;
  follow({
    changed: (now) => {
      log.level = now['log.level'];
      log.info('config.toml has changed');
    },
    wrong: (message) => log.warn(message),
  });
  const sites = new SiteBook(paths, (message) => log.warn(message));
  // Set when the state directory was removed, or another machine uses it: what is there now belongs to another agent.
  let gone = false;
  const me: Daemon = { ...processIdentity(), since: Date.now(), build: ownBuild() };
  const one = instanceLock(queue, me);
  await one.claim();
  await freeLease(queue);
  const kept = new KeptMark(queue, paths.stateDir);
  const lacks = await kept.check();
  if (lacks !== undefined) {
    log.error(lacks);
    await queue.notice({ about: 'fault', message: lacks });
  }
  await kept.write();
  kept.open();
  noteRedisUrl(paths, process.env['REDIS_URL']);
  noteDaemon(paths, SCHEDULER, me);
  const children = new Children({
    env: process.env,
    longestWaitMs: () => settings['gridmanager.restart_max'] * 1000,
    onStart: (child) => {
      const { pid, identity, startedAt } = child;
      log.info({ identity, manager: pid }, 'GridManager started');
      const daemon = { ...processIdentity(pid), since: startedAt };
      noteDaemon(paths, `${MANAGER}${identity}`, daemon);
      void DAEMONS.set(queue.kv, `${MANAGER}${identity}`, daemon).catch(() => undefined);
    },
    onEnd: (child, clean, message) => {
      log[clean ? 'info' : 'error']({ identity: child.identity, manager: child.pid, message }, 'GridManager ended');
      if (!gone) forgetDaemon(paths, `${MANAGER}${child.identity}`);
      void DAEMONS.delete(queue.kv, `${MANAGER}${child.identity}`).catch(() => undefined);
      scheduler.staffSoon();
      const about = clean ? 'manager-ended' : 'manager-failed';
      void queue
        .notice({ about, manager: child.identity, message: `The GridManager of ${child.identity} ended: ${message}.` })
        .catch(() => undefined);
    },
  });
  const pool = new PoolKeeper({
    agent: queue.agent,
    env: process.env,
    socket: poolPlaces(paths).clientSocket,
    longestWaitMs: settings['gridmanager.restart_max'] * 1000,
    hungAfterMs: () => settings['gridmanager.hung_after'] * 1000,
    log: (message, facts) => log.info(facts ?? {}, message),
  });
  const flock = new FlockKeeper(queue.agent, paths, (message, facts) => log.info(facts ?? {}, message));
  const onFault = (message: string, error: Error): void => {
    log.error({ err: error }, message);
    void queue.notice({ about: 'fault', message: oneLine(message) }).catch(() => undefined);
  };
  const warn = (message: string, facts?: object) => log.warn(facts ?? {}, message);
  const outbox = await Outbox.open({ queue, settings, log: warn });
  const alarms = new Alarms({ settings, outbox, log: warn });
  const userLogs = await openUserLogs({
    paths,
    kv: queue.kv,
    alarms,
    keepForMs: () => settings['history.keep_for'] * 1000,
    log: warn,
  });
  const credentials = new CredentialWatch({
    queue,
    paths,
    loadSites: () => sites.sites(),
    settings,
    alarms,
    log: warn,
  });
  const broker = new Broker({
    queue,
    loadSites: () => sites.sites(),
    patience: () => settings['broker.max_wait'],
    floodSites: () => settings['broker.flood_sites'],
    log: (message, facts) => log.info(facts ?? {}, message),
    onFault: (where, error) => onFault(`The broker failed while ${where}: ${error.message}`, error),
  });
  const glideins = new GlideinKeeper({
    queue,
    paths,
    settings,
    owner: settings.owner ?? ownUser().username,
    loadSites: () => sites.sites(),
    log: (message, facts) => log.info(facts ?? {}, message),
  });
  const usage = new UsageKeeper({
    queue,
    stateDir: paths.stateDir,
    others: async () => [...(await DAEMONS.list(queue.kv)).map(({ value }) => value.pid), ...redisPid(paths.stateDir)],
    machines: (named) => pool.machines(named),
  });
  const scheduler = new Scheduler({
    queue,
    children,
    pool,
    poolFirst: () => settings['submit.default_site'] === POOL_SITE.name && settings['pool.local_worker'],
    broker,
    chooser: async () => new SiteChooser(await sites.sites(), settings['submit.default_site'], sites.problems),
    glideins,
    usage,
    listeners: [
      new LogListener({
        queue,
        logs: userLogs,
        host: hostname(),
        style: () => settings['user_log.format'],
      }),
      new DagListener({
        queue,
        stateDir: paths.stateDir,
        keepRecords: () => settings['history.keep_jobs'],
        keepForMs: () => settings['history.keep_for'] * 1000,
      }),
      new Dependencies(queue),
      new MailListener({ queue, settings, outbox, alarms }),
      credentials,
      broker,
      glideins,
    ],
    periodicMs: () => settings['scheduler.periodic_interval'] * 1000,
    hungAfterMs: () => settings['gridmanager.hung_after'] * 1000,
    idleExitMs: () =>
      flock.isWanted ? Number.POSITIVE_INFINITY : (settings['scheduler.idle_exit'] ?? Number.POSITIVE_INFINITY) * 1000,
    keep: () => ({
      jobs: settings['history.keep_jobs'],
      seconds: settings['history.keep_for'],
      recent: RECENT_SECONDS,
    }),
    one,
    log: (message, facts) => log.info(facts ?? {}, message),
    onFault,
  });
  const leaveState = endWithState(paths.stateDir, () => {
    gone = true;
    log.error('the state directory is not ours any more');
    scheduler.end();
  });
  const leavePlace = usePlace(paths.stateDir, (host) => {
    log.error({ host }, 'another machine uses the state directory');
    // Nothing is started again.
    told.abort();
    leaveState();
  });
  const leave = (): void => {
    for (const keeper of [children, pool, flock, glideins]) keeper.leave();
    scheduler.end();
  };
  told.signal.addEventListener('abort', leave, { once: true });
  if (told.signal.aborted) leave();
  spreadNet({ onFault, end: (error) => scheduler.end(error) });
  // GridManagers survive a Scheduler that was killed, and with them the connections that users logged in to. They are
  // adopted only now, because one that exits at once is reported to the Scheduler.
  for (const { key, value } of await DAEMONS.list(queue.kv)) {
    if (key.startsWith(MANAGER) && isAlive(value)) children.adopt(key.slice(MANAGER.length), value);
    else if (key !== SCHEDULER) await DAEMONS.delete(queue.kv, key);
  }
  const endFlocking = eachSecond(() => {
    if (flock.look()) pool.want();
  });
  try {
    await scheduler.run(() => {
      if (told.signal.aborted) return;
      credentials.open();
      ready();
    });
  } finally {
    closeSettings();
    endFlocking();
    flock.close();
    kept.close();
    leavePlace();
    if (!gone) await kept.write().catch(() => undefined);
    if (!gone) await usage.round().catch(() => undefined);
    if (!gone) await queue.coverFiles().catch(() => undefined);
    await userLogs.close();
    await credentials.close();
    await glideins.close();
    const patienceMs = gone ? 3000 : told.signal.aborted ? 4000 : 10_000;
    await Promise.all([children.end(patienceMs), pool.end(patienceMs)]);
    if (!gone) {
      await one.giveBack().catch(() => undefined);
      forgetDaemon(paths, SCHEDULER);
    }
  }
  return !gone && scheduler.endedIdle;
}

outliveReader();
runDaemon(main());
