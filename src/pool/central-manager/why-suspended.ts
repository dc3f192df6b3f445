import { inAd, readNumber, readString } from '../../job/values.ts';
import type { WaitInPool } from '../wire/client-wire.ts';
import type { Attempt } from './attempts.ts';
import type { CentralManager } from './central-manager.ts';

/**
 * Who has a job suspended, and what lets it go on; `undefined` if it is not suspended. The parts of a parallel job are
 * suspended together, for the owner of any of their machines.
 */
export function whySuspended(
  { collector }: Pick<CentralManager, 'collector'>,
  attempts: readonly Attempt[],
): WaitInPool | undefined {
  const still = attempts.filter(({ phase, still: byUser }) => phase === 'suspended' || (phase === 'running' && byUser));
  if (still.length === 0) return undefined;
  const all = still.flatMap(({ all: nodes }) => nodes?.() ?? []);
  const [held] = [...still, ...all].filter(({ slot }) => slot?.activity === 'Suspended');
  const worker = (attempt: Attempt | undefined) =>
    attempt?.worker === undefined ? undefined : collector.get(attempt.worker);
  const machine = worker(held);
  if (machine) {
    const ad = inAd(machine.texts);
    const owner = readString(ad, 'GryphusOwner')?.replace(/;.*$/s, '');
    return { lines: [owner === undefined ? notYet(ad) : `Suspended by its machine: ${owner}.`] };
  }
  if (still.some((attempt) => inAd(worker(attempt)?.texts ?? {}).get('FlockWay') !== undefined))
    return { lines: ['Suspended where it runs, at a partner.'] };
  return { lines: ['Suspended by its user (gryphus suspend).'], byUser: true };
}

/** The owner is away, and CONTINUE looks at more than that. */
function notYet(ad: ReturnType<typeof inAd>): string {
  const [idle, load, own] = ['KeyboardIdle', 'LoadAvg', 'CondorLoadAvg'].map((name) => readNumber(ad, name));
  const seen = [
    ...(idle === undefined ? [] : [`KeyboardIdle = ${idle}`]),
    ...(load === undefined || own === undefined
      ? []
      : [`load of other programs ${Math.max(0, load - own).toFixed(2)}`]),
  ];
  const now = seen.length === 0 ? '' : ` (${seen.join(', ')})`;
  return `Suspended by its machine: the policy there does not let it go on yet${now}.`;
}
