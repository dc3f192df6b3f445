import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DAEMON, type Daemon, SCHEDULER } from '../config/daemon-files.ts';
import type { Paths } from '../config/paths.ts';
import { GryphusError } from '../errors.ts';
import type { Queue } from '../queue/api.ts';
import { isAlive } from '../util/process-identity.ts';

/** The Scheduler that runs now, if one does. */
export async function runningScheduler(queue: Queue): Promise<Daemon | undefined> {
  const entry = await queue.kv.get('daemon', SCHEDULER);
  const found = entry ? DAEMON.safeParse(JSON.parse(entry.value)) : undefined;
  return found?.success && isAlive(found.data) ? found.data : undefined;
}

/** Starts the Scheduler as a process of its own; resolves when it is at work, rejects with what it complained of. */
export async function startScheduler(paths: Paths, env: NodeJS.ProcessEnv): Promise<void> {
  const main = fileURLToPath(new URL('../scheduler/main.js', import.meta.url));
  if (!existsSync(main))
    throw new GryphusError('internal', `The Scheduler's program ${main} is not there: run the build.`);
  const child = spawn(process.execPath, ['--enable-source-maps', main], {
    env,
    cwd: paths.stateDir,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    let said = '';
    let complaint = '';
    child.once('error', reject);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('ready\n')) resolve();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint += text;
    });
    child.once('close', (code) => reject(failure(complaint.trim(), code)));
  });
  child.stdout.destroy();
  child.stderr.destroy();
  child.unref();
}

function failure(complaint: string, code: number | null): GryphusError {
  if (code === 75) return new GryphusError('already-running', complaint);
  return new GryphusError(
    'queue-unavailable',
    complaint === '' ? `The Scheduler ended at once (exit status ${code}).` : complaint,
    {
      suggestions: ['Its log is in the state directory under log/scheduler.log.'],
    },
  );
}
