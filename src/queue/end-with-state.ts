import { join } from 'node:path';
import { goneCheck, isMarked } from '../util/marked-dir.ts';
import { readPid } from '../util/pid-file.ts';
import { isAlive, type ProcessIdentity, processIdentity } from '../util/process-identity.ts';
import { serverPlace } from './redis-place.ts';

/** Interval of the checks, milliseconds; two consecutive ones must agree. */
const LOOK_MS = 1500;
/** Time to shut down before the process is killed, milliseconds. */
const LAST_MS = 4000;

/**
 * For daemons: if the state directory is removed or replaced by another agent's, calls `end`, and later kills the
 * process. The first daemon to end also kills the private Redis, whose data nobody can use any more.
 */
export function endWithState(stateDir: string, end: () => void): void {
  // The process that starts a daemon marks the directory first.
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
      // A regular exit would wait for calls that hang.
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
    // It has just exited.
    return undefined;
  }
}

function kill(server: ProcessIdentity | undefined): void {
  if (!server || !isAlive(server)) return;
  try {
    process.kill(server.pid, 'SIGKILL');
  } catch {
    // It exited before the signal.
  }
}
