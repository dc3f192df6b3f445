import { isAlive } from '../../util/process-identity.ts';
import type { Run } from './run.ts';
import { limitTime } from './run-timers.ts';
import { stop } from './stopping.ts';

/** The interval between looks at the exit record, in milliseconds. */
const LOOK_MS = 200;

/**
 * Waits for the exit record, or the end of the shell, of a run that an earlier worker started: its shell is not our child.
 * What that worker had decided to stop is stopped.
 */
export function awaitEnd(run: Run, over: () => void): void {
  if (!run.shell) return over();
  const isOver = () => {
    run.startedAt ??= run.dir.startedAt();
    return run.dir.exit() !== undefined || !run.shell || !isAlive(run.shell);
  };
  if (isOver()) return over();
  const look = setInterval(() => {
    if (!isOver()) return;
    clearInterval(look);
    over();
  }, LOOK_MS);
  run.timers.push(look);
  limitTime(run);
  if (run.decided && !run.isOver) stop(run, run.decided);
}
