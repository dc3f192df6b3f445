import { type Gryphus, type JobId, sessions } from '../index.ts';
import { LIFE } from '../job/life.ts';
import { firstOf } from '../util/first-of.ts';
import { ignoresHangUp } from '../util/hang-up.ts';
import { showWhy, statusOf } from './run-follow.ts';
import { ProgressLine } from './show/progress.ts';
import { typedShell } from './typed-shell.ts';

const INTERRUPTED = 130;
const TERMINATED = 143;
const CUT_OFF = 'which was cut off';
/** How long it waits for the end of its job before it looks whether that has lost its machine, in milliseconds. */
const LOOK_MS = 3000;

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
    const ends = { SIGINT: INTERRUPTED, SIGTERM: TERMINATED, ...(ignoresHangUp() ? {} : { SIGHUP: TERMINATED }) };
    for (const [signal, status] of Object.entries(ends))
      process.removeAllListeners(signal).once(signal, () => {
        leave.abort();
        resolve(status);
      });
  });
  try {
    const status = await Promise.race([cut, session(gryphus, id, command, begins, leave.signal)]);
    if (leave.signal.aborted) await remove(gryphus, id, CUT_OFF);
    return status;
  } catch (error) {
    await remove(gryphus, id, CUT_OFF).catch(() => undefined);
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
  const job = await look(gryphus, id);
  if (job === undefined || job.shows === 'held') return settled(gryphus, id);
  begins();
  const { sessionCommand } = await sessions();
  const status = await typedShell(gryphus, id, sessionCommand(command));
  // Until its files are here.
  while (!(await gryphus.wait({ ids: [id], until: 'settled', signal, timeoutMs: LOOK_MS }))) {
    if (signal.aborted) return status;
    const now = await look(gryphus, id);
    if (now === undefined || (now.shows !== 'idle' && now.starts === job.starts)) continue;
    process.stderr.write('gryphus: the session is over: its job lost its machine.\n');
    await remove(gryphus, id, 'whose machine was lost');
    return status;
  }
  await settled(gryphus, id);
  return status;
}

/** The job's exit status. A held one, of which it says why, is removed: nobody comes back to it. */
async function settled(gryphus: Gryphus, id: JobId): Promise<number> {
  const status = await statusOf(gryphus, id, { comesBack: false });
  if ((await look(gryphus, id))?.shows === 'held') await remove(gryphus, id, 'which is over');
  return status;
}

/** As what the job shows in the queue, and how often it has started; `undefined` if it has left it. */
async function look(gryphus: Gryphus, id: JobId) {
  const job = await firstOf(gryphus.query({ ids: [id], attributes: ['NumJobStarts'] }));
  return job && { shows: LIFE[job.state].shows, starts: job.ad['NumJobStarts'] };
}

async function remove(gryphus: Gryphus, id: JobId, which: string): Promise<void> {
  await gryphus.act('remove', { ids: [id], reason: `via its session, ${which}` });
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
