import { hostname } from 'node:os';
import { join } from 'node:path';
import { ensureStateDirs, loadPaths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { loadSites } from '../config/sites.ts';
import { asError, GryphusError } from '../errors.ts';
import { openLog } from '../log.ts';
import { openQueue, type Queue } from '../queue/api.ts';
import { isAlive, processIdentity } from '../util/process-identity.ts';
import { Alarms } from './alarms.ts';
import { Broker } from './broker.ts';
import { Children } from './children.ts';
import { CredentialWatch } from './credential-watch.ts';
import { DagListener } from './dag-listener.ts';
import { LogListener } from './log-listener.ts';
import { MailListener } from './mail-listener.ts';
import { Outbox } from './outbox.ts';
import { Scheduler } from './scheduler.ts';

/** The Scheduler's process. It says `ready` on standard output when it is at work. */
async function main(): Promise<void> {
  const paths = loadPaths();
  ensureStateDirs(paths);
  const settings = await loadSettings(paths);
  const log = openLog(join(paths.logDir, 'scheduler.log'), settings['log.level'], settings['log.max_size']);
  const queue = await openQueue({
    stateDir: paths.stateDir,
    socketDir: paths.socketDir,
    url: settings['redis.url'],
    server: settings['redis.server'],
    start: 'keep',
  });
  await refuseSecond(queue);
  const children = new Children({
    env: process.env,
    longestWaitMs: settings['gridmanager.restart_max'] * 1000,
    onStart: (child) => {
      const { pid, identity, startedAt } = child;
      log.info({ identity, manager: pid }, 'GridManager started');
      void queue.kv
        .set('daemon', `gm:${identity}`, JSON.stringify({ ...processIdentity(pid), since: startedAt }))
        .catch(() => undefined);
    },
    onEnd: (child, clean, words) => {
      log[clean ? 'info' : 'error']({ identity: child.identity, manager: child.pid, words }, 'GridManager ended');
      void queue.kv.delete('daemon', `gm:${child.identity}`).catch(() => undefined);
      scheduler.staffSoon();
      const about = clean ? 'manager-ended' : 'manager-failed';
      void queue
        .notice({ about, manager: child.identity, message: `The GridManager of ${child.identity} ended: ${words}.` })
        .catch(() => undefined);
    },
  });
  const warn = (message: string, facts?: object) => log.warn(facts ?? {}, message);
  const outbox = await Outbox.open({ queue, settings, log: warn });
  const alarms = new Alarms({ settings, outbox, log: warn });
  const credentials = new CredentialWatch({ queue, paths, settings, alarms, log: warn });
  const broker = new Broker({
    queue,
    loadSites: () => loadSites(paths),
    patience: settings['broker.max_wait'],
    log: (message, facts) => log.info(facts ?? {}, message),
  });
  const scheduler = new Scheduler({
    queue,
    children,
    broker,
    listeners: [
      new LogListener({
        queue,
        host: hostname(),
        style: settings['user_log.format'],
        log: warn,
      }),
      new DagListener({
        queue,
        stateDir: paths.stateDir,
        keepRecords: settings['history.keep_jobs'],
        keepForMs: settings['history.keep_for'] * 1000,
      }),
      new MailListener({ queue, settings, outbox, alarms }),
      credentials,
      broker,
    ],
    periodicMs: settings['scheduler.periodic_interval'] * 1000,
    log: (message, facts) => log.info(facts ?? {}, message),
  });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => scheduler.end());
  try {
    await scheduler.run(() => {
      credentials.open();
      void queue.kv.set('daemon', 'scheduler', JSON.stringify({ ...processIdentity(), since: Date.now() })).then(() => {
        log.info('ready');
        process.stdout.write('ready\n');
      });
    });
  } finally {
    await credentials.close();
    await children.end(10_000);
    await queue.kv.delete('daemon', 'scheduler').catch(() => undefined);
    await queue.close();
    log.info('ended');
  }
}

/** A Scheduler that was killed holds its lease on: whoever is alive holds it for good, a dead one's is taken. */
async function refuseSecond(queue: Queue): Promise<void> {
  const entry = await queue.kv.get('daemon', 'scheduler');
  if (!entry) return;
  const other: { pid: number; started: string } = JSON.parse(entry.value);
  if (isAlive(other)) {
    throw new GryphusError(
      'already-running',
      `A Scheduler runs already on this state directory (process ${other.pid}).`,
      {
        suggestions: ['See `gryphus status`; end it with `gryphus down`.'],
      },
    );
  }
  const lease = await queue.acquireLease('scheduler', 1, { force: true });
  if (lease) await queue.releaseLease(lease);
}

// The one who started us goes away after `ready`: its closed pipes must not end us.
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);

main().then(
  () => process.exit(0),
  (thrown: unknown) => {
    process.stderr.write(`${asError(thrown).message}\n`);
    process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
  },
);
