import { type Gryphus, type JobId, sessions } from '../index.ts';
import { LIFE } from '../job/life.ts';
import { firstOf } from '../util/first-of.ts';
import { showWhy, statusOf } from './run-follow.ts';
import { ProgressLine } from './show/progress.ts';
import { typedShell } from './typed-shell.ts';

const INTERRUPTED = 130;
const TERMINATED = 143;

/**
 * Waits until a job that keeps its resources for a session (`sessionHolder`) runs, and runs the command beside it, with
 * this process' streams; its exit status. The job ends with the session, and is removed if that cannot begin or is cut
 * off. `begins` is called when the job runs.
 */
export async function runSession(
  gryphus: Gryphus,
  id: JobId,
  command: readonly string[],
  begins: () => void = () => undefined,
): Promise<number> {
  const leave = new AbortController();
  const cut = new Promise<number>((resolve) => {
    const ends = { SIGINT: INTERRUPTED, SIGTERM: TERMINATED, SIGHUP: TERMINATED } as const;
    for (const [signal, status] of Object.entries(ends))
      process.removeAllListeners(signal).once(signal, () => {
        leave.abort();
        resolve(status);
      });
  });
  const remove = () => gryphus.act('remove', { ids: [id], reason: 'via its session, which was cut off' });
  try {
    const status = await Promise.race([cut, session(gryphus, id, command, begins, leave.signal)]);
    if (leave.signal.aborted) await remove();
    return status;
  } catch (error) {
    await remove().catch(() => undefined);
    throw error;
  }
}

async function session(
  gryphus: Gryphus,
  id: JobId,
  command: readonly string[],
  begins: () => void,
  signal: AbortSignal,
): Promise<number> {
  await started(gryphus, id, signal);
  if (signal.aborted) return INTERRUPTED;
  const job = await firstOf(gryphus.query({ ids: [id], attributes: [] }));
  if (!job || LIFE[job.state].shows === 'held') {
    const status = await statusOf(gryphus, id);
    await gryphus.act('remove', { ids: [id], reason: 'via its session, which never began' });
    return status;
  }
  begins();
  const { sessionCommand } = await sessions();
  const status = await typedShell(gryphus, id, sessionCommand(command));
  // Until its files are here.
  await gryphus.wait({ ids: [id], until: 'settled', signal });
  if (!signal.aborted) await statusOf(gryphus, id);
  return status;
}

async function started(gryphus: Gryphus, id: JobId, signal: AbortSignal): Promise<void> {
  const running = new AbortController();
  const line = new ProgressLine();
  const shown = showWhy(gryphus, id, line, AbortSignal.any([signal, running.signal]));
  try {
    await gryphus.wait({ ids: [id], until: 'start', signal });
  } finally {
    running.abort();
    await shown;
    line.clear();
  }
}
