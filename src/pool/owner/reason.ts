import { ClassAd, literal } from '../../classad/api.ts';
import type { Policy } from './policy.ts';
import type { OwnerWord } from './owner-file.ts';

export interface ReasonOptions {
  readonly policy: Policy;
  /** The machine's ad at this time. */
  readonly my: ClassAd;
  /** Unix seconds. */
  readonly now: number;
  readonly keyboard: number | undefined;
  /** The source of the latest sign of the owner. */
  readonly by: string | undefined;
  /** Since when the owner has been present. */
  readonly presentSince: number | undefined;
  readonly off: OwnerWord['off'] | undefined;
}

/** Idle times that are tried to find when a machine may take jobs again, in seconds. */
const MOST_IDLE = 7 * 86_400;

/** Why a machine is reserved for its owner, for the users of the pool. */
export function ownerReason(options: ReasonOptions): string {
  const { policy, my, now, keyboard, by, presentSince, off } = options;
  if (off) {
    const until = off.until === undefined ? '' : ` until ${clock(off.until)}`;
    return `its owner took it out of the pool at ${clock(off.since)}${until}`;
  }
  const takes = (changes: Readonly<Record<string, number | boolean>>): boolean => {
    const other = new ClassAd().chainTo(my);
    for (const [name, value] of Object.entries(changes)) other.setExpr(name, literal(value));
    return !policy.isOwner({ my: other, now });
  };
  if (takes({ OnBattery: false })) return 'it runs on battery';
  const quiet = { LoadAvg: 0, CondorLoadAvg: 0, CpuBusyTime: 0 };
  if (takes(quiet)) return 'other programs are using its processors';
  const needed = leastIdle((idle) => takes({ ...quiet, OnBattery: false, KeyboardIdle: idle }));
  if (keyboard === undefined && needed !== undefined)
    return 'it cannot tell whether its owner is present (gryphus pool idle)';
  if (keyboard === undefined || needed === undefined || keyboard > needed) return 'its START policy accepts no job now';
  const source = by === undefined ? '' : ` (${by})`;
  const wait = `it may take jobs ${minutes(needed)} after the last sign`;
  return presentSince === undefined
    ? `its owner was active until ${clock(now - keyboard)}${source}; ${wait}`
    : `its owner has been at the keyboard since ${clock(presentSince)}${source}; ${wait}`;
}

/** The smallest idle time, in seconds, at which the machine takes jobs; `undefined` if there is none. */
function leastIdle(takes: (idle: number) => boolean): number | undefined {
  if (!takes(MOST_IDLE)) return undefined;
  let [least, most] = [0, MOST_IDLE];
  while (most - least > 1) {
    const middle = Math.floor((least + most) / 2);
    if (takes(middle)) most = middle;
    else least = middle;
  }
  return least;
}

/** The time of day at the machine; with the date, if that is not today's. */
export function clock(at: number): string {
  const date = new Date(at * 1000);
  const two = (part: number) => String(part).padStart(2, '0');
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return date.toDateString() === new Date().toDateString()
    ? time
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

function minutes(seconds: number): string {
  return seconds % 60 === 0 && seconds > 0 ? `${seconds / 60} min` : `${seconds} s`;
}
