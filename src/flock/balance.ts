import * as z from 'zod';
import { amount, count } from '../util/schema.ts';

/** Core seconds by hour: what a partner's jobs used of us, and ours of it. */
const HOUR = z.strictObject({ hour: count, lent: amount, borrowed: amount });
export const BALANCE = z.array(HOUR);
type Hour = z.infer<typeof HOUR>;

const PERIODS = { day: 24, month: 720 } as const;
/** Older hours are forgotten. */
const KEPT = PERIODS.month;

/** What two pools used of each other. */
export class Balance {
  #hours: Hour[];

  constructor(hours: readonly Hour[] = []) {
    this.#hours = [...hours];
  }

  /** `now`: Unix seconds; the others: core seconds. */
  add(now: number, lent: number, borrowed: number): void {
    if (lent <= 0 && borrowed <= 0) return;
    const hour = Math.floor(now / 3600);
    let found = this.#hours.find((one) => one.hour === hour);
    if (!found) {
      found = { hour, lent: 0, borrowed: 0 };
      this.#hours = [...this.#hours.filter((one) => one.hour > hour - KEPT), found];
    }
    found.lent += Math.max(0, lent);
    found.borrowed += Math.max(0, borrowed);
  }

  /** Core hours of the last day or 30 days. */
  over(period: keyof typeof PERIODS, now: number): { readonly lent: number; readonly borrowed: number } {
    const since = Math.floor(now / 3600) - PERIODS[period];
    const recent = this.#hours.filter(({ hour }) => hour > since);
    return {
      lent: recent.reduce((sum, { lent }) => sum + lent, 0) / 3600,
      borrowed: recent.reduce((sum, { borrowed }) => sum + borrowed, 0) / 3600,
    };
  }

  get hours(): readonly Hour[] {
    return this.#hours;
  }
}
