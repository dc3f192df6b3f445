import { asError, GryphusError } from '../errors.ts';

/** One step of `gryphus site test` or `alarm test`. */
export interface CheckStep {
  readonly step: string;
  readonly ok: boolean;
  readonly message: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** The steps until the log-in is done. */
export const REACHING = ['name', 'connection', 'host key', 'log-in'] as const;

export function failedStep(step: string, thrown: unknown): CheckStep {
  const error = asError(thrown);
  const remedy = error instanceof GryphusError ? error.suggestions.join(' ') : '';
  return { step, ok: false, message: error.message, ...(remedy === '' ? {} : { remedy }) };
}

export function interrupted(): GryphusError {
  return new GryphusError('interrupted', 'The test was interrupted; it left nothing at the site.');
}

/** The result of `work`, unless the signal comes first. */
export async function until<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  const stopped = new Promise<never>((_, reject) => {
    const stop = () => reject(interrupted());
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([work, stopped]);
}
