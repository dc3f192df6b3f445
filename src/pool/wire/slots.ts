import type { Size } from './wire.ts';
import { counted } from '../../util/plain-text.ts';

/** Whether `wanted` fits into what is `free`. */
export function fits(wanted: Size, free: Size): boolean {
  return (
    wanted.cpus <= free.cpus &&
    wanted.memoryMb <= free.memoryMb &&
    wanted.diskKb <= free.diskKb &&
    wanted.gpus <= free.gpus &&
    shortOther(wanted, free) === undefined
  );
}

/**
 * The first resource of the user's choice that does not fit. A machine that does not have it at all may still advertise
 * an attribute of that name: the job's Requirements decide.
 */
function shortOther({ others: wanted = {} }: Size, { others: free = {} }: Size): string | undefined {
  return Object.keys(wanted).find((name) => (wanted[name] ?? 0) > (free[name] ?? Number.POSITIVE_INFINITY));
}

/** How many times `wanted` fits into what is `free`. */
export function slotsIn(wanted: Size, free: Size): number {
  const times = (one: number, of: number): number => (one <= 0 ? Number.POSITIVE_INFINITY : Math.floor(of / one));
  const most = Math.min(
    times(wanted.cpus, free.cpus),
    times(wanted.memoryMb, free.memoryMb),
    times(wanted.diskKb, free.diskKb),
    times(wanted.gpus, free.gpus),
    ...Object.entries(free.others ?? {}).map(([name, much]) => times(wanted.others?.[name] ?? 0, much)),
  );
  return Number.isFinite(most) ? Math.max(0, most) : 0;
}

export function minus(a: Size, b: Size): Size {
  return {
    cpus: a.cpus - b.cpus,
    memoryMb: a.memoryMb - b.memoryMb,
    diskKb: a.diskKb - b.diskKb,
    gpus: a.gpus - b.gpus,
    ...othersOf(a, b, -1),
  };
}

export function plus(a: Size, b: Size): Size {
  return {
    cpus: a.cpus + b.cpus,
    memoryMb: a.memoryMb + b.memoryMb,
    diskKb: a.diskKb + b.diskKb,
    gpus: a.gpus + b.gpus,
    ...othersOf(a, b, 1),
  };
}

/** Of the resources that `a` has. */
function othersOf({ others }: Size, { others: b = {} }: Size, sign: 1 | -1): Pick<Size, 'others'> {
  if (!others) return {};
  const sum = ([name, much]: [string, number]) => [name, much + sign * (b[name] ?? 0)] as const;
  return { others: Object.fromEntries(Object.entries(others).map(sum)) };
}

export const NOTHING: Size = { cpus: 0, memoryMb: 0, diskKb: 0, gpus: 0 };

/** The first resource that does not fit, as text for users: `8 cores (4 free)`. */
export function shortOf(wanted: Size, free: Size, what: 'free' | 'in all' = 'free'): string | undefined {
  const of = (much: number) => `(${Math.max(0, much)} ${what})`;
  if (wanted.cpus > free.cpus) return `${counted(wanted.cpus, 'core')} ${of(free.cpus)}`;
  if (wanted.memoryMb > free.memoryMb) return `${wanted.memoryMb} MB of memory ${of(free.memoryMb)}`;
  if (wanted.diskKb > free.diskKb) return `${wanted.diskKb} KB of disk ${of(free.diskKb)}`;
  if (wanted.gpus > free.gpus) return `${wanted.gpus} GPUs ${of(free.gpus)}`;
  const other = shortOther(wanted, free);
  if (other !== undefined) return `${wanted.others?.[other]} ${other} ${of(free.others?.[other] ?? 0)}`;
  return undefined;
}
