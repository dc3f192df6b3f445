import * as z from 'zod';
import { loadSettings } from '../config/settings.ts';
import type { Paths } from '../config/paths.ts';
import { GryphusError } from '../errors.ts';
import { openQueue, type Queue, stopRedis } from '../queue/api.ts';
import { isAlive, type ProcessIdentity } from '../util/process-identity.ts';
import { runningScheduler } from './daemon.ts';
import type { DaemonStatus, Totals } from './types.ts';

const MANAGER = z.object({ pid: z.number(), started: z.string(), since: z.number() });
const PREFIX = 'gm:';
/** How long a daemon may take to end in order, milliseconds. */
const PATIENCE_MS = 20_000;

export async function daemonStatus(queue: Queue, paths: Paths, totals: () => Promise<Totals>): Promise<DaemonStatus> {
  const scheduler = await runningScheduler(queue);
  const settings = await loadSettings(paths);
  return {
    running: scheduler !== undefined,
    ...(scheduler ? { pid: scheduler.pid, since: scheduler.since } : {}),
    home: paths.stateDir,
    redis: (process.env['REDIS_URL'] ?? settings['redis.url']) === undefined ? 'up' : 'external',
    managers: (await managers(queue)).map(({ identity, pid, since }) => ({ identity, pid, since })),
    totals: await totals(),
  };
}

/** Ends all daemons of a state directory in order, the private Redis last. */
export async function endDaemons(paths: Paths): Promise<DaemonStatus> {
  const settings = await loadSettings(paths);
  const external = (process.env['REDIS_URL'] ?? settings['redis.url']) !== undefined;
  const options = { stateDir: paths.stateDir, socketDir: paths.socketDir };
  const down = { running: false, home: paths.stateDir, redis: external ? 'external' : 'down', managers: [] } as const;
  const queue = await openQueue({ ...options, url: settings['redis.url'], start: 'never' }).catch((thrown: unknown) => {
    if (thrown instanceof GryphusError && thrown.code === 'queue-unavailable') return undefined;
    throw thrown;
  });
  if (queue) {
    const scheduler = await runningScheduler(queue);
    if (scheduler) await endProcess(scheduler);
    for (const manager of await managers(queue)) await endProcess(manager);
    await queue.close();
  }
  if (!external) await stopRedis(options);
  return down;
}

async function managers(queue: Queue): Promise<(ProcessIdentity & { identity: string; since: number })[]> {
  const entries = await queue.kv.list('daemon');
  return entries
    .filter(({ key }) => key.startsWith(PREFIX))
    .map(({ key, value }) => ({ identity: key.slice(PREFIX.length), ...MANAGER.parse(JSON.parse(value)) }))
    .filter(isAlive);
}

async function endProcess(daemon: ProcessIdentity): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  signal(daemon.pid, 'SIGTERM');
  while (isAlive(daemon)) {
    if (Date.now() > deadline) signal(daemon.pid, 'SIGKILL');
    await new Promise((done) => setTimeout(done, 30));
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It is gone.
  }
}
