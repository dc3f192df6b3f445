import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type { Gryphus, JobId, Why } from '../index.ts';
import { formatJobId } from '../job/ids.ts';
import { LIFE } from '../job/life.ts';
import { OUTCOME_ATTRIBUTES, outcomeOf } from '../job/outcome.ts';
import { firstOf } from '../util/first-of.ts';
import { ProgressLine } from './show/progress.ts';
import { stringOf } from './show/ad.ts';

/** The exit status if the job has none, as of env(1), timeout(1) and docker. */
const NO_STATUS = 125;
const INTERRUPTED = 130;
const TERMINATED = 143;
/** Within this time, a second Ctrl-C leaves the job running; milliseconds. */
const SECOND_THOUGHT_MS = 1000;
const LOOK_MS = 1000;

type Stream = 'stdout' | 'stderr';

/** Shows the output of a job until it ends or is held; the exit status of the command. */
export async function followRun(
  gryphus: Gryphus,
  id: JobId,
  streams: readonly Stream[] = ['stdout', 'stderr'],
): Promise<number> {
  const leave = new AbortController();
  const signals = new Signals(gryphus, id, leave);
  const line = new ProgressLine();
  const waits = showWhy(gryphus, id, line, leave.signal);
  try {
    await Promise.all([
      gryphus.wait({ ids: [id], until: 'settled', signal: leave.signal }),
      ...streams.map((stream) => show(gryphus, id, stream, process[stream], line, leave.signal)),
    ]);
    if (leave.signal.aborted) return signals.status;
    line.clear();
    return await statusOf(gryphus, id, { interrupted: signals.interrupted ? signals.status : undefined });
  } finally {
    leave.abort();
    signals.end();
    await waits;
    line.clear();
  }
}

/**
 * The exit status of a job that has ended or is held; says why it has none, unless it was interrupted, which has its own.
 * `comesBack`: whether it says how to come back to a held job.
 */
export async function statusOf(
  gryphus: Gryphus,
  id: JobId,
  { interrupted, comesBack = true }: { readonly interrupted?: number | undefined; readonly comesBack?: boolean } = {},
): Promise<number> {
  const job = await firstOf(gryphus.jobs({ ids: [id], attributes: ['Out', 'Err', 'In', ...OUTCOME_ATTRIBUTES] }));
  if (!job) throw new GryphusError('not-found', `There is no job ${formatJobId(id)}.`);
  const outcome = outcomeOf(job.state, { get: (name) => job.ad[name] });
  if (outcome.is !== 'held') {
    const { removeRunFiles } = await import('./run-files.ts');
    for (const name of ['Out', 'Err', 'In']) removeRunFiles(gryphus.paths.stateDir, stringOf(job.ad, name) ?? '');
  }
  if (outcome.is === 'exited') return outcome.code;
  if (outcome.is === 'killed') return 128 + outcome.signal;
  if (interrupted !== undefined) return interrupted;
  const why = await firstOf(gryphus.why({ ids: [job.id] }));
  const lines = [
    `gryphus: Job ${formatJobId(job.id)}: ${why?.summary ?? outcome.is}`,
    ...(why?.details ?? []).map((one) => `  ${one}`),
    ...(why?.suggestions ?? []).map((one) => `  → ${one}`),
    ...(outcome.is === 'held' && comesBack
      ? [`  → Then come back to it: gryphus run --attach ${formatJobId(job.id)}`]
      : []),
  ];
  process.stderr.write(`${lines.join('\n')}\n`);
  return NO_STATUS;
}

async function show(
  gryphus: Gryphus,
  id: JobId,
  stream: Stream,
  to: NodeJS.WriteStream,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of gryphus.tail({ id, stream, follow: true, signal })) {
      if (to.isTTY) line.clear();
      if (!to.write(chunk)) await new Promise((resolve) => to.once('drain', resolve));
    }
  } catch (error) {
    // A job that never ran has written nothing.
    if (!(error instanceof GryphusError) || error.code !== 'not-found') throw error;
  }
}

/** At a terminal, what the job waits for, until it runs. */
export async function showWhy(gryphus: Gryphus, id: JobId, line: ProgressLine, signal: AbortSignal): Promise<void> {
  if (!process.stderr.isTTY) return;
  let waiting = true;
  while (waiting && !signal.aborted) {
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
    // While the queue is away, there is nothing to show.
    const why: Why | undefined = await firstOf(gryphus.why({ ids: [id] })).catch(() => undefined);
    if (signal.aborted) break;
    waiting = why === undefined || LIFE[why.state].shows === 'idle';
    if (waiting && why) line.show(`${formatJobId(id)}: ${why.summary}`.slice(0, (process.stderr.columns ?? 80) - 1));
    else line.clear();
  }
}

/** The first Ctrl-C removes the job after a moment; a second within it leaves the job and ends the command. */
class Signals {
  readonly #gryphus: Gryphus;
  readonly #id: JobId;
  readonly #leave: AbortController;
  #removal: NodeJS.Timeout | undefined;
  #status: number | undefined;

  constructor(gryphus: Gryphus, id: JobId, leave: AbortController) {
    this.#gryphus = gryphus;
    this.#id = id;
    this.#leave = leave;
    process.removeAllListeners('SIGINT').on('SIGINT', this.#interrupt);
    process.removeAllListeners('SIGTERM').on('SIGTERM', this.#terminate);
  }

  get interrupted(): boolean {
    return this.#status !== undefined;
  }

  get status(): number {
    return this.#status ?? INTERRUPTED;
  }

  end(): void {
    clearTimeout(this.#removal);
    process.off('SIGINT', this.#interrupt).off('SIGTERM', this.#terminate);
  }

  readonly #interrupt = (): void => {
    const name = formatJobId(this.#id);
    const first = this.#status === undefined;
    this.#status = INTERRUPTED;
    if (first) {
      say(`Removing job ${name} (Ctrl-C again within a second: leave it running).`);
      this.#removal = setTimeout(() => this.#remove(), SECOND_THOUGHT_MS);
      return;
    }
    const removed = this.#removal === undefined;
    clearTimeout(this.#removal);
    if (removed) say(`Job ${name} is being removed; \`gryphus q ${name}\` shows it.`);
    else say(`Job ${name} goes on. To come back: gryphus run --attach ${name}`);
    this.#leave.abort();
  };

  readonly #terminate = (): void => {
    clearTimeout(this.#removal);
    this.#status = TERMINATED;
    this.#remove();
  };

  #remove(): void {
    this.#removal = undefined;
    const reason = 'via gryphus run, interrupted';
    this.#gryphus.act('remove', { ids: [this.#id], reason }).catch((error: unknown) => {
      say(`Job ${formatJobId(this.#id)} was not removed: ${error instanceof Error ? error.message : String(error)}`);
      this.#leave.abort();
    });
  }
}

function say(message: string): void {
  process.stderr.write(`${process.stderr.isTTY ? '\n' : ''}gryphus: ${message}\n`);
}
