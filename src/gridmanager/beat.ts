import { eachSecond } from '../util/each-second.ts';

/** How often a lease is renewed, which shows that its holder lives; and if that counts as hung before several renewals. Seconds. */
const USUAL = 10;
const OFTEN = 5;
const RENEWALS = 6;

/** Renews in time for a holder that counts as hung after so many milliseconds, by the current settings. Returns what ends it. */
export function beatInTime(renew: () => void, hungAfterMs: () => number): () => void {
  let renewedAt = Number.NEGATIVE_INFINITY;
  const beat = (): void => {
    const now = performance.now();
    const every = hungAfterMs() < RENEWALS * USUAL * 1000 ? OFTEN : USUAL;
    // Timers are late.
    if (now - renewedAt < (every - OFTEN / 2) * 1000) return;
    renewedAt = now;
    renew();
  };
  return eachSecond(beat, { every: OFTEN, keepsAlive: true });
}
