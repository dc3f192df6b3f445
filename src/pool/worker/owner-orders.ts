import type { Orders } from './owner-control.ts';
import { saveNow } from './save-now.ts';
import type { StartdOptions } from './startd-options.ts';
import { evicted, stop, stopNow } from './stopping.ts';
import { suspend } from './suspending.ts';

/** How the orders of the policy are carried out. */
export function ownerOrders(means: () => Pick<StartdOptions, 'owner' | 'say' | 'chirp'>): Orders {
  return {
    hold: (run, still) => suspend(run, still, 'owner', means()),
    vacate: (run, { message, by }, mostSeconds) => stop(run, evicted(message, by), mostSeconds),
    kill: (run, { message, by }) => stopNow(run, evicted(message, by)),
    checkpoint: (run, answer) => saveNow(run, 'policy', means(), answer),
  };
}
