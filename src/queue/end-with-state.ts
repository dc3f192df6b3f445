import { join } from 'node:path';
import { goneCheck, isMarked } from '../util/marked-dir.ts';
import { readPid } from '../util/pid-file.ts';
import { isAlive, type ProcessIdentity, processIdentity } from '../util/process-identity.ts';
import { serverPlace } from './redis-place.ts';

/** How often it is looked, milliseconds; two looks in turn must say the same. */
const LOOK_MS = 1500;
/** What has not ended in order by then is killed, milliseconds. */
const LAST_MS = 4000;

/**
 * For a daemon's process: where its state directory is removed, or another agent's is in its place, it is asked to end, and
 * made to. The private Redis goes with the first daemon that ends so; what it holds is nobody's any more.
 */
export function endWithState(stateDir: string, end: () => void): void {
  // Whoever starts a daemon has marked the directory.
  const gone = isMarked(stateDir) ? goneCheck(stateDir) : () => true;
  let server = serverOf(stateDir);
  let misses = 0;
  const timer = setInterval(() => {
    misses = gone() ? misses + 1 : 0;
    if (misses === 0) server = serverOf(stateDir) ?? server;
    if (misses < 2) return;
    clearInterval(timer);
    process.once('exit', () => kill(server));
    setTimeout(() => {
      kill(server);
      // An orderly exit would wait for calls that hang.
      process.kill(process.pid, 'SIGKILL');
    }, LAST_MS);
    end();
  }, LOOK_MS);
  timer.unref();
}

function serverOf(stateDir: string): ProcessIdentity | undefined {
  try {
    const pid = readPid(join(serverPlace({ stateDir }).pidFile));
    const found = pid === undefined ? undefined : processIdentity(pid);
    return found && isAlive(found) ? found : undefined;
  } catch {
    // It is gone this very moment.
    return undefined;
  }
}

function kill(server: ProcessIdentity | undefined): void {
  if (!server || !isAlive(server)) return;
  try {
    process.kill(server.pid, 'SIGKILL');
  } catch {
    // It was faster.
  }
}
