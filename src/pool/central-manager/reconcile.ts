import type { Ending } from '../../site/contract.ts';
import type { Attempt } from './attempts.ts';
import type { HeldAttempt } from '../wire/wire.ts';

export type Finding =
  /** Nothing needs to be done. */
  | { readonly is: 'settled' }
  /** The worker has it; `phase` is set if it is further along than we knew. */
  | { readonly is: 'there'; readonly phase?: 'running' | 'suspended' }
  | { readonly is: 'ended'; readonly ending: Ending }
  /** The grant never arrived: nothing of it has run. */
  | { readonly is: 'not-arrived' };

/**
 * What a returning worker's report means for an attempt that was granted to it. Only if the same boot of the same
 * machine has no trace of a granted attempt is it certain that it did not start.
 */
export function findingOf(
  attempt: Pick<Attempt, 'phase' | 'boot'>,
  worker: { readonly boot: string },
  held: HeldAttempt | undefined,
): Finding {
  if (attempt.phase === 'ended' || attempt.phase === 'withdrawn') return { is: 'settled' };
  if (held?.is === 'ended') return held.ending ? { is: 'ended', ending: held.ending } : { is: 'settled' };
  if (held?.is === 'running' || held?.is === 'suspended')
    return attempt.phase === held.is ? { is: 'there' } : { is: 'there', phase: held.is };
  if (held) return { is: 'there' };
  if (attempt.phase === 'granted' && attempt.boot === worker.boot) return { is: 'not-arrived' };
  const message = 'its worker has no record of it any more';
  return { is: 'ended', ending: { how: { kind: 'by-site', cause: 'node-fail', message } } };
}
