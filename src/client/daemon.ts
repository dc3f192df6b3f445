import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { GryphusError } from '../errors.ts';
import type { Queue } from '../queue/api.ts';
import { DAEMONS } from '../queue/tables.ts';
import { type Daemon, SCHEDULER } from '../util/daemon.ts';
import { daemonEnvironment } from '../util/environments.ts';
import { isAlive } from '../util/process-identity.ts';
import { spawnApart } from '../util/spawn-apart.ts';

/** The environment for an agent's daemons and files, with the requested home. */
export function environment({ home }: { readonly home?: string }): NodeJS.ProcessEnv {
  const own = home ?? process.env['GRYPHUS_HOME'];
  // The daemons change directory, so a relative home must be made absolute.
  return own === undefined ? process.env : { ...process.env, GRYPHUS_HOME: own && resolve(own) };
}

/** Where an agent's queue is, according to its files. */
export function queuePlace({ stateDir, socketDir }: Paths, settings: Settings) {
  return { stateDir, socketDir, url: settings['redis.url'], server: settings['redis.server'] };
}

/** The running Scheduler, if any. */
export async function runningScheduler(queue: Queue): Promise<Daemon | undefined> {
  const found = await DAEMONS.get(queue.kv, SCHEDULER);
  return found && isAlive(found) ? found : undefined;
}

/** Makes sure that a Scheduler runs. */
export async function ensureScheduler(
  queue: Queue,
  paths: Paths,
  settings: Settings,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  if (await runningScheduler(queue)) return queue.handOver();
  try {
    await startScheduler(paths, settings, env, () => queue.handOver());
  } catch (thrown) {
    // Another process started one first, which serves as well.
    if (thrown instanceof GryphusError && thrown.code === 'already-running') return queue.handOver();
    throw thrown;
  }
}

/** How many times a Scheduler is started that is killed before it is ready. */
const STARTS = 3;

/** Starts the Scheduler as a separate process; resolves when it is ready, rejects with its error. `onStart`: it runs. */
export async function startScheduler(
  paths: Paths,
  settings: Settings,
  env: NodeJS.ProcessEnv,
  onStart: () => void = () => undefined,
): Promise<void> {
  let killedBy: NodeJS.Signals | undefined;
  for (let starts = 0; starts < STARTS; starts++) {
    killedBy = await startOnce(paths, settings, env, onStart);
    if (killedBy === undefined) return;
  }
  throw failure(`The Scheduler was killed by ${killedBy} while starting, ${STARTS} times.`, null);
}

/** Returns the signal that killed it before it was ready, if one did. */
async function startOnce(
  paths: Paths,
  settings: Settings,
  env: NodeJS.ProcessEnv,
  onStart: () => void,
): Promise<NodeJS.Signals | undefined> {
  const main = fileURLToPath(new URL('../scheduler/main.js', import.meta.url));
  if (!existsSync(main))
    throw new GryphusError('internal', `The Scheduler's program ${main} does not exist: run the build.`);
  const child = spawnApart(process.execPath, [main], {
    env: daemonEnvironment(env, settings['daemons.environment']),
    cwd: paths.stateDir,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid !== undefined) onStart();
  const killedBy = await new Promise<NodeJS.Signals | undefined>((resolve, reject) => {
    let said = '';
    let complaint = '';
    child.once('error', reject);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('ready\n')) resolve(undefined);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint += text;
    });
    child.once('close', (code, signal) => {
      if (signal) resolve(signal);
      else reject(failure(complaint.trim(), code));
    });
  });
  child.stdout.destroy();
  child.stderr.destroy();
  child.unref();
  return killedBy;
}

function failure(complaint: string, code: number | null): GryphusError {
  if (code === 75) return new GryphusError('already-running', complaint);
  return new GryphusError(
    'queue-unavailable',
    complaint === '' ? `The Scheduler exited at once (exit status ${code}).` : complaint,
    {
      suggestions: ['Its log is in the state directory under log/scheduler.log.'],
    },
  );
}
