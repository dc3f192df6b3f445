import type { Borrowed } from './borrowed-journal.ts';

/** A partner takes a job that it is asked to take, and starts it, within so many milliseconds each, while it fetches no inputs. */
export const START_MS = 60_000;
/** Inputs are fetched at this rate at least, in bytes a millisecond. */
const LEAST_RATE = 4;

/** Whether a partner is too slow with a job: nothing was fetched for a while, or too little in all since it had to begin. */
export function isStuck({ servedAt = 0, served = 0 }: Borrowed, begun: number, now: number): boolean {
  return now - Math.max(begun, servedAt) > START_MS || now - begun > START_MS + served / LEAST_RATE;
}
