import { eachSecond } from '../util/each-second.ts';
import { goneCheck, isMarked } from '../util/marked-dir.ts';
import { isAlive, type ProcessIdentity } from '../util/process-identity.ts';
import { serverProcess } from './redis-files.ts';
import { serverPlace } from './redis-place.ts';

/** Interval of the checks, seconds. */
const LOOK_SECONDS = 5;
/** A second check must agree, after so many milliseconds. */
const AGAIN_MS = 1000;
/** Time to shut down before the process is killed, milliseconds. */
const LAST_MS = 4000;

/**
 * For daemons: if the state directory is removed or replaced by another agent's, calls `end`, and later kills the
 * process. The first daemon to end also kills the private Redis, whose data nobody can use any more. Returns what does the same at
 * once, for a directory that another machine uses now.
 */
export function endWithState(stateDir: string, end: () => void): () => void {
  // The process that starts a daemon marks the directory first.
  const gone = isMarked(stateDir) ? goneCheck(stateDir) : () => true;
  let server = serverOf(stateDir);
  let again: NodeJS.Timeout | undefined;
  const leave = (): void => {
    stop();
    clearTimeout(again);
    process.once('exit', () => kill(server));
    setTimeout(() => {
      kill(server);
      // A regular exit would wait for calls that hang.
      process.kill(process.pid, 'SIGKILL');
    }, LAST_MS);
    end();
  };
  const stop = eachSecond(
    () => {
      if (!gone()) {
        if (!(server && isAlive(server))) server = serverOf(stateDir) ?? server;
        return;
      }
      again ??= setTimeout(() => {
        again = undefined;
        if (gone()) leave();
      }, AGAIN_MS).unref();
    },
    { every: LOOK_SECONDS },
  );
  return () => {
    kill(server);
    leave();
  };
}

function serverOf(stateDir: string): ProcessIdentity | undefined {
  try {
    const { dir, pidFile } = serverPlace({ stateDir });
    return serverProcess(dir, pidFile);
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
