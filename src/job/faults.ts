import { asError, GryphusError } from '../errors.ts';
import { formatJobId, type JobId } from './ids.ts';
import { SimulatedCrash } from '../util/crash-point.ts';
import { Pauses } from '../util/pauses.ts';
import { isAboutTheSite } from './about-the-site.ts';

const ENDS: ReadonlySet<string> = new Set(['stale-epoch', 'already-running']);

/** Whether this process must end: another process has taken over its work, or a test simulated a crash. */
export function endsProcess(thrown: unknown): boolean {
  return thrown instanceof SimulatedCrash || (thrown instanceof GryphusError && ENDS.has(thrown.code));
}

/**
 * Whether this is an unexpected error: not an outage of the queue or a site, and not a takeover by another process. It
 * comes from one job's data, one site's answer or a bug of ours, and must not stop other jobs' work.
 */
export function isFault(thrown: unknown): boolean {
  if (endsProcess(thrown) || isAboutTheSite(thrown)) return false;
  return !(thrown instanceof GryphusError) || thrown.retry !== 'later';
}

/** The error in words for a user; a GryphusError already has them and is returned unchanged. */
export function asFault(thrown: unknown, doing: string): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  const { name, message } = asError(thrown);
  return new GryphusError(
    'internal',
    `Gryphus failed while ${doing}, because of an internal error (${name}: ${message})`,
    {
      cause: thrown,
    },
  );
}

/** Called for each error that was contained, with where it happened (a few words) and when the work is tried again. */
export type ReportFault = (where: string, error: Error, waitMs: number) => void;

/** Pauses after a job's first errors, milliseconds; after one more error the job is held, if its state allows it. */
const REST_MS = [1000, 10_000, 60_000] as const;
const REST_ON_MS = 600_000;

type Stage = { readonly id: JobId; readonly attempt: number; readonly state: string };

/** Jobs whose own processing failed: each is skipped for a while, and the rest of its batch continues. */
export class Troubles {
  readonly #pauses = new Pauses((times) => REST_MS[times - 1] ?? REST_ON_MS);
  readonly #report: ReportFault;
  readonly #now: () => number;

  constructor(report: ReportFault, now: () => number) {
    this.#report = report;
    this.#now = now;
  }

  isResting(job: Stage): boolean {
    return this.#pauses.waitMs(nameOf(job), this.#now()) > 0;
  }

  /**
   * Handles an error in a job's processing. Returns the error to hold the job with, if it explains itself or has
   * recurred too often; `undefined` if the work is to be tried again later. Rethrows what is not the job's own error.
   */
  met(job: Stage, doing: string, thrown: unknown): GryphusError | undefined {
    if (!isFault(thrown)) throw thrown;
    const times = this.#pauses.failed(nameOf(job), this.#now());
    const said = thrown instanceof GryphusError && thrown.code !== 'internal';
    if (!said) this.#report(`${doing} of job ${formatJobId(job.id)}`, asError(thrown), this.#pauses.of(times));
    if (!said && times <= REST_MS.length) return undefined;
    // Once released, the job is tried again at once.
    this.#pauses.passed(nameOf(job));
    return asFault(thrown, doing);
  }
}

function nameOf({ id, attempt, state }: Stage): string {
  return `${formatJobId(id)}.${attempt} ${state}`;
}

/**
 * Calls `call` with all items. If it fails with an error that a single item may have caused, splits the batch in half
 * and retries, until the failing items are isolated and all others have their results.
 */
export async function narrowing<T, R>(
  all: readonly T[],
  call: (some: readonly T[]) => Promise<R>,
  isOnes: (thrown: unknown) => boolean = isFault,
): Promise<{ readonly done: readonly R[]; readonly failed: ReadonlyMap<T, unknown> }> {
  if (all.length === 0) return { done: [], failed: new Map() };
  try {
    return { done: [await call(all)], failed: new Map() };
  } catch (thrown) {
    if (!isOnes(thrown)) throw thrown;
    const [only] = all;
    if (all.length === 1 && only !== undefined) return { done: [], failed: new Map([[only, thrown]]) };
    const middle = Math.ceil(all.length / 2);
    const first = await narrowing(all.slice(0, middle), call, isOnes);
    const second = await narrowing(all.slice(middle), call, isOnes);
    return { done: [...first.done, ...second.done], failed: new Map([...first.failed, ...second.failed]) };
  }
}
