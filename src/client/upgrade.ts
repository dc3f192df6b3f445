import { ownBuild } from '../config/build.ts';
import { daemonsOnDisk } from '../config/daemon-files.ts';
import type { Paths } from '../config/paths.ts';
import { openQueue, type Queue, type QueueOptions } from '../queue/api.ts';
import { isOlderState } from '../util/state-version.ts';
import { runningScheduler } from './daemon.ts';
import { endDaemons } from './daemon-status.ts';

/** Opens the queue. Where that may start daemons, those of an older version are ended first: the present one follows them. */
export async function openPresentQueue(paths: Paths, at: QueueOptions): Promise<Queue> {
  if (at.start === 'never') return openQueue(at);
  await endDaemonsOfOlderState(paths);
  const queue = await openQueue(at);
  try {
    if (!(await endsOlderDaemons(queue, paths))) return queue;
  } catch (thrown) {
    await queue.close();
    throw thrown;
  }
  return openPresentQueue(paths, at);
}

/**
 * Ends the daemons that an older version left running, and closes the queue, which stops with them; returns whether it did.
 * Jobs at sites and in the pool keep running. Only a log-in with a one-time code has to be repeated: its connection was that
 * of a GridManager. Another build of the same version is left alone; `gryphus status` shows it.
 */
async function endsOlderDaemons(queue: Queue, paths: Paths): Promise<boolean> {
  const scheduler = await runningScheduler(queue);
  if (!scheduler || !isOlder(scheduler.build?.version ?? '0', ownBuild().version)) return false;
  await queue.close();
  await endDaemons(paths);
  return true;
}

/**
 * Ends the daemons of a program whose state this one carries over: while they run, it is theirs. Before the queue is opened, which
 * an older state does not allow.
 */
async function endDaemonsOfOlderState(paths: Paths): Promise<void> {
  if (isOlderState(paths.stateDir) && daemonsOnDisk(paths).length > 0) await endDaemons(paths);
}

/** Whether one version comes before the other: `0.9.0` before `0.10.0`. What is no number counts as 0. */
export function isOlder(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => text.split(/[.+-]/).map((part) => Number(part) || 0));
  for (let at = 0; at < 3; at++) {
    const difference = (one?.[at] ?? 0) - (other?.[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
