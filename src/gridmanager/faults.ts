import { asError, GryphusError } from '../errors.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { SimulatedCrash } from '../util/crash-point.ts';
import { Pauses } from '../util/pauses.ts';
import { isAboutTheSite } from './about-the-site.ts';

const ENDS: ReadonlySet<string> = new Set(['stale-epoch', 'already-running']);

/** This process must not go on: another one does its work, or a test took it down. */
export function endsProcess(thrown: unknown): boolean {
  return thrown instanceof SimulatedCrash || (thrown instanceof GryphusError && ENDS.has(thrown.code));
}

/**
 * What nobody foresaw where it was caught: neither the queue nor a site is away, and no other process has the work. It comes
 * from one job's data, one site's answer or a mistake of ours, and must not take others' work with it.
 */
export function isFault(thrown: unknown): boolean {
  if (endsProcess(thrown) || isAboutTheSite(thrown)) return false;
  return !(thrown instanceof GryphusError) || thrown.retry !== 'later';
}

/** The fault in words, for a user; what was said in words already stays. */
export function asFault(thrown: unknown, doing: string): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  const { name, message } = asError(thrown);
  return new GryphusError(
    'internal',
    `Gryphus failed at ${doing}, because of an internal error (${name}: ${message})`,
    {
      cause: thrown,
    },
  );
}

/** Told of each fault that was contained: where, in a few words, and when it is tried again. */
export type ReportFault = (where: string, error: Error, waitMs: number) => void;

/** A job is left alone after its first faults for so long, milliseconds; after the last of them it is held, where it can be. */
const REST_MS = [1000, 10_000, 60_000] as const;
const REST_ON_MS = 600_000;

type Stage = { readonly id: JobId; readonly attempt: number; readonly state: string };

/** Jobs whose own work met faults: they are left alone for a while, and the others of their batch go on. */
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
   * A job's work met a fault. The error to hold it with where it is one that says what is wrong, or that has come again and
   * again; `undefined`: it is tried again later. What is not the job's own is thrown.
   */
  met(job: Stage, doing: string, thrown: unknown): GryphusError | undefined {
    if (!isFault(thrown)) throw thrown;
    const times = this.#pauses.failed(nameOf(job), this.#now());
    const said = thrown instanceof GryphusError && thrown.code !== 'internal';
    if (!said) this.#report(`${doing} of job ${formatJobId(job.id)}`, asError(thrown), this.#pauses.of(times));
    if (!said && times <= REST_MS.length) return undefined;
    // Who releases it has it tried at once.
    this.#pauses.passed(nameOf(job));
    return asFault(thrown, doing);
  }
}

function nameOf({ id, attempt, state }: Stage): string {
  return `${formatJobId(id)}.${attempt} ${state}`;
}

/**
 * One call for many. Where it fails through what may be one's own fault, each half is tried by itself until that one is
 * alone: the others have their outcome.
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
