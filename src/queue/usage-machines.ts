import type { AttrTexts } from '../job/attrs.ts';
import { readBoolean, readNumber, readString } from '../job/values.ts';
import type { UsageMachine } from './usage-day.ts';

/** A day's file has no more machines: further ones are counted together. */
const MOST_MACHINES = 100;
const OTHERS = '(others)';
/** The states of a machine's own slot in which it takes no job. */
const CLOSED: ReadonlySet<string> = new Set(['Owner', 'Drained']);
const NONE: UsageMachine = { looks: 0, open: 0, cores: 0, busy: 0, suspended: 0 };

/**
 * What one look at the pool's slots shows of each machine; machines that are away are not seen. `named`: those that the day has already,
 * beside which `most` are shown together; the others are counted as one.
 */
export function lookAtMachines(
  slots: Iterable<AttrTexts>,
  named: Iterable<string> = [],
  most = MOST_MACHINES,
): ReadonlyMap<string, UsageMachine> {
  const shown = new Set(named);
  const seen = new Map<string, UsageMachine>();
  const add = (name: string, more: UsageMachine) => {
    if (shown.size < most) shown.add(name);
    const key = shown.has(name) ? name : OTHERS;
    seen.set(key, sumOfMachines(seen.get(key) ?? NONE, more));
  };
  for (const texts of slots) {
    const ad = { get: (name: string) => texts[name] ?? undefined };
    const state = readString(ad, 'State') ?? '';
    if (state === 'Unknown') continue;
    const name = nameOf(readString(ad, 'Machine') ?? '', readString(ad, 'GryphusSite') ?? '');
    const cores = readNumber(ad, 'Cpus') ?? 0;
    if (readBoolean(ad, 'PartitionableSlot') === true) {
      const open = CLOSED.has(state) ? 0 : 1;
      add(name, { ...NONE, looks: 1, open, cores: readNumber(ad, 'TotalCpus') ?? cores });
    } else if (readString(ad, 'Activity') === 'Suspended') add(name, { ...NONE, suspended: cores });
    else if (state === 'Claimed' || state === 'Preempting') add(name, { ...NONE, busy: cores });
  }
  return seen;
}

/** Adds a look to those of the day. */
export function withMachines(
  day: Readonly<Record<string, UsageMachine>>,
  seen: ReadonlyMap<string, UsageMachine>,
  most = MOST_MACHINES,
): Record<string, UsageMachine> {
  const all = { ...day };
  for (const [name, one] of seen) {
    const full = !Object.hasOwn(all, name) && Object.keys(all).length >= most;
    const key = full ? OTHERS : name;
    all[key] = sumOfMachines(all[key] ?? NONE, one);
  }
  return all;
}

export function sumOfMachines(a: UsageMachine, b: UsageMachine): UsageMachine {
  return {
    looks: a.looks + b.looks,
    open: a.open + b.open,
    cores: a.cores + b.cores,
    busy: a.busy + b.busy,
    suspended: a.suspended + b.suspended,
  };
}

function nameOf(machine: string, site: string): string {
  return site === 'local' ? machine : `${machine} (${site})`;
}
