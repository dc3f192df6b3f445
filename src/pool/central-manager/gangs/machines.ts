import { fits, minus, plus, slotsIn } from '../../wire/slots.ts';
import type { Size } from '../../wire/wire.ts';

/** A worker, as the dedicated scheduler sees it. Times are in seconds from now. */
export interface Machine {
  readonly id: string;
  readonly site: string;
  /** ParallelSchedulingGroup. */
  readonly group: string | undefined;
  /** What it has in all, and what of it is free now. */
  readonly all: Size;
  readonly free: Size;
  /** When its allocation ends. */
  readonly timeToLive: number;
  readonly busy: readonly Busy[];
}

/** What is in use of a machine. */
export interface Busy {
  /** The claim. */
  readonly id: string;
  readonly size: Size;
  /** When it ends at the latest; infinite if that is not known. */
  readonly ends: number;
  /** It may be ended for a parallel job, and how much work would be lost then, in seconds. */
  readonly loses: number | undefined;
}

/** Machines that a parallel job needs, all of one size. */
export interface Part {
  readonly count: number;
  readonly size: Size;
  readonly suits: (machine: Machine) => boolean;
}

/** What is set aside of one machine. */
export interface Hold {
  readonly machine: string;
  readonly size: Size;
  /** When it will be used; until then it may serve what ends earlier. Infinite if that is not known. */
  readonly at: number;
  /** The parallel job that it is for, or the owner of the reservation. */
  readonly for: string;
}

/** One slot of a parallel job: the index of its part, and its machine. */
export interface Seat {
  readonly part: number;
  readonly machine: string;
}

/** How long something may take that has to be out of the way: HTCondor's vacating, in seconds. */
export const VACATE_SECONDS = 10;

/** When a slot is free: an opportunistic job that may be vacated is out of the way soon. */
function freeAt({ ends, loses }: Busy): number {
  return loses === undefined ? ends : Math.min(ends, VACATE_SECONDS);
}

/** The moments at which more becomes free, in order, infinity last. */
export function momentsOf(machines: readonly Machine[]): number[] {
  const moments = new Set(machines.flatMap(({ busy }) => busy.map(freeAt)));
  moments.add(Number.POSITIVE_INFINITY);
  return [...moments].sort((a, b) => a - b);
}

/** What is free of a machine at that time if nothing else starts there. */
export function freeThen(machine: Machine, at: number): Size {
  let free = machine.free;
  for (const one of machine.busy) if (freeAt(one) <= at) free = plus(free, one.size);
  return free;
}

/**
 * What may be used of a machine now by something that ends after `seconds`, without delaying those for whom parts of it
 * are held.
 */
export function spare(machine: Machine, holds: readonly Hold[], seconds: number): Size {
  const here = holds.filter((hold) => hold.machine === machine.id && (hold.at < seconds || !Number.isFinite(hold.at)));
  let least = machine.free;
  for (const at of new Set(here.map((hold) => hold.at))) {
    const taken = here.filter((hold) => hold.at <= at);
    // When nobody knows when a slot will be free, what is held is what is free already.
    const then = Number.isFinite(at) ? freeThen(machine, at) : machine.free;
    least = smaller(
      least,
      taken.reduce((left, { size }) => minus(left, size), then),
    );
  }
  return least;
}

function smaller(a: Size, b: Size): Size {
  const least = (one: number, other: number) => Math.max(0, Math.min(one, other));
  const names = Object.keys(a.others ?? {});
  return {
    cpus: least(a.cpus, b.cpus),
    memoryMb: least(a.memoryMb, b.memoryMb),
    diskKb: least(a.diskKb, b.diskKb),
    gpus: least(a.gpus, b.gpus),
    ...(a.others && {
      others: Object.fromEntries(names.map((name) => [name, least(a.others?.[name] ?? 0, b.others?.[name] ?? 0)])),
    }),
  };
}

/**
 * Seats for all parts, or `undefined`. The seats are on machines of one site if one site has enough, and otherwise on
 * any; with `oneGroup`, only on machines of one group.
 */
export function seats(
  parts: readonly Part[],
  machines: readonly Machine[],
  capacity: (machine: Machine) => Size,
  oneGroup = false,
): readonly Seat[] | undefined {
  const spaces = new Map(machines.map((machine) => [machine.id, capacity(machine)]));
  const sets = [...grouped(machines, oneGroup ? ({ group }) => group : ({ site }) => site).values()];
  if (!oneGroup && sets.length > 1) sets.push([...machines]);
  for (const set of sets) {
    const found = within(parts, set, spaces);
    if (found) return found;
  }
  return undefined;
}

function grouped(machines: readonly Machine[], by: (machine: Machine) => string | undefined): Map<string, Machine[]> {
  const sets = new Map<string, Machine[]>();
  for (const machine of machines) {
    const name = by(machine);
    if (name === undefined) continue;
    const set = sets.get(name);
    if (set) set.push(machine);
    else sets.set(name, [machine]);
  }
  return sets;
}

function within(
  parts: readonly Part[],
  machines: readonly Machine[],
  spaces: ReadonlyMap<string, Size>,
): Seat[] | undefined {
  const left = new Map(spaces);
  const found: Seat[][] = parts.map(() => []);
  const suited = parts.map((part, index) => ({ part, index, on: machines.filter((machine) => part.suits(machine)) }));
  // Those with the fewest machines first, so that the others do not take these.
  for (const { part, index, on } of suited.sort(
    (a, b) => a.on.length - b.on.length || b.part.size.cpus - a.part.size.cpus,
  )) {
    let missing = part.count;
    for (const { id } of on) {
      let space = left.get(id);
      if (missing === 0) break;
      if (!space) continue;
      for (let times = Math.min(missing, slotsIn(part.size, space)); times > 0 && fits(part.size, space); times--) {
        space = minus(space, part.size);
        found[index]?.push({ part: index, machine: id });
        missing -= 1;
      }
      left.set(id, space);
    }
    if (missing > 0) return undefined;
  }
  return found.flat();
}

/** How many of a part's slots there is space for. */
export function spaceFor(part: Part, machines: readonly Machine[], capacity: (machine: Machine) => Size): number {
  return machines.reduce((sum, machine) => sum + (part.suits(machine) ? slotsIn(part.size, capacity(machine)) : 0), 0);
}
