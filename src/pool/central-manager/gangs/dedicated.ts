import { minus } from '../../wire/slots.ts';
import type { Size } from '../../wire/wire.ts';
import {
  type Busy,
  freeThen,
  type Hold,
  type Machine,
  momentsOf,
  type Part,
  spaceFor,
  type Seat,
  seats,
  spare,
} from './machines.ts';

/** A parallel job that waits. */
export interface Wish {
  readonly id: string;
  readonly owner: string;
  readonly parts: readonly Part[];
  /** How long it runs at the most, in seconds; infinite if that is not known. */
  readonly seconds: number;
  /** All its machines must be of one ParallelSchedulingGroup. */
  readonly oneGroup: boolean;
}

/** Machines set aside for an owner, from one time until another; seconds from now. */
export interface Reserved {
  readonly id: string;
  readonly owner: string;
  readonly part: Part;
  readonly from: number;
  readonly until: number;
}

/** What the scheduler has to say about a parallel job that does not start now. */
export type Told =
  /** It is the first that waits: its slots are held, and it is expected to start then (infinite: not known). */
  | { readonly is: 'next'; readonly at: number; readonly free: number; readonly wanted: number }
  /** Others come first. */
  | { readonly is: 'behind'; readonly free: number; readonly wanted: number }
  /** The machines never have so many slots: it is passed over until there are more. */
  | { readonly is: 'never'; readonly most: number; readonly wanted: number }
  /** Enough slots are free, but so many of them are on machines that end too soon. */
  | { readonly is: 'short'; readonly soon: number; readonly free: number; readonly wanted: number };

export interface Plan {
  readonly starts: readonly { readonly id: string; readonly seats: readonly Seat[] }[];
  /** Claims of opportunistic jobs that have to make way. */
  readonly vacate: readonly { readonly claim: string; readonly machine: string; readonly for: string }[];
  readonly holds: readonly Hold[];
  readonly told: ReadonlyMap<string, Told>;
}

/** A slot is not given to a job of unknown run time on a machine that ends within this time, in seconds. */
const LEAST_TIME = 90;

function lasts({ timeToLive }: Machine, from: number, seconds: number): boolean {
  if (!Number.isFinite(timeToLive)) return true;
  return timeToLive > from + (Number.isFinite(seconds) ? seconds : LEAST_TIME);
}

/**
 * The dedicated scheduler: which parallel jobs start now, on which machines. It takes the jobs in the given order. One
 * that can never be met is passed over. The first that cannot start now is promised the slots that are free first: what
 * is free already, then what opportunistic jobs can be made to give, then what other jobs give when they end. These
 * slots are held. What comes later may start if it does not use them, or has ended by then (EASY backfill). A parallel
 * job gets all its slots or none, so that two never wait for each other's.
 */
export function plan(wishes: readonly Wish[], machines: readonly Machine[], reserved: readonly Reserved[] = []): Plan {
  const starts: { id: string; seats: readonly Seat[] }[] = [];
  const vacate: { claim: string; machine: string; for: string }[] = [];
  const told = new Map<string, Told>();
  const holds: Hold[] = reserved.flatMap((one) => setAside(one, machines));
  let now = machines;
  let waits = false;
  for (const wish of wishes) {
    const { parts, seconds, oneGroup } = wish;
    const wanted = parts.reduce((sum, { count }) => sum + count, 0);
    // Its owner's own reservation, while that is in force.
    const others = holds.filter((hold) => hold.for !== reservationOf(wish.owner) || hold.at > 0);
    const open = now.filter((machine) => lasts(machine, 0, seconds));
    const space = (machine: Machine) => spare(machine, others, seconds);
    const found = seats(parts, open, space, oneGroup);
    if (found) {
      starts.push({ id: wish.id, seats: found });
      now = taken(now, wish, found);
      continue;
    }
    const free = freeFor(parts, now, (machine) => spare(machine, others, seconds));
    if (!seats(parts, now, ({ all }) => all, oneGroup)) {
      told.set(wish.id, { is: 'never', most: freeFor(parts, now, ({ all }) => all), wanted });
      continue;
    }
    if (waits) {
      told.set(wish.id, { is: 'behind', free, wanted });
      continue;
    }
    waits = true;
    const promise = promised(wish, now, others);
    if (!promise) {
      told.set(wish.id, { is: 'short', soon: now.length - open.length, free, wanted });
      continue;
    }
    told.set(wish.id, { is: 'next', at: promise.at, free, wanted });
    holds.push(...promise.holds);
    vacate.push(...promise.vacate.map((one) => ({ ...one, for: wish.id })));
  }
  return { starts, vacate, holds, told };
}

/** Under which name what is reserved for an owner is held. */
export function reservationOf(owner: string): string {
  return `reservation of ${owner}`;
}

function freeFor(parts: readonly Part[], machines: readonly Machine[], space: (machine: Machine) => Size): number {
  // What one part takes is not there for the next.
  const left = new Map(machines.map((machine) => [machine.id, space(machine)]));
  let found = 0;
  for (const part of parts) {
    let missing = part.count;
    for (const machine of machines) {
      const free = left.get(machine.id) ?? space(machine);
      const times = Math.min(
        missing,
        spaceFor(part, [machine], () => free),
      );
      const taken = Array.from({ length: times }, () => part.size);
      left.set(
        machine.id,
        taken.reduce((size, one) => minus(size, one), free),
      );
      missing -= times;
      found += times;
    }
  }
  return found;
}

/** The slots that the first waiting job gets, when, and who has to make way for it. */
function promised(
  wish: Wish,
  machines: readonly Machine[],
  holds: readonly Hold[],
):
  | {
      readonly at: number;
      readonly holds: readonly Hold[];
      readonly vacate: Pick<Plan['vacate'][number], 'claim' | 'machine'>[];
    }
  | undefined {
  for (const at of momentsOf(machines)) {
    const from = Number.isFinite(at) ? at : 0;
    const lasting = machines.filter((machine) => lasts(machine, from, wish.seconds));
    const space = (machine: Machine) => without(freeThen(machine, at), holds, machine.id);
    // What is free already comes first.
    const order = [...lasting].sort((a, b) => b.free.cpus - a.free.cpus);
    const found = seats(wish.parts, order, space, wish.oneGroup);
    if (!found) continue;
    const own = heldFor(wish, found, at);
    return { at, holds: own, vacate: machines.flatMap((machine) => makeWay(machine, own, at)) };
  }
  return undefined;
}

function without(free: Size, holds: readonly Hold[], machine: string): Size {
  return holds.filter((hold) => hold.machine === machine).reduce((left, { size }) => minus(left, size), free);
}

function heldFor({ id, parts }: Wish, found: readonly Seat[], at: number): Hold[] {
  return found.flatMap(({ part, machine }) => {
    const size = parts[part]?.size;
    return size ? [{ machine, size, at, for: id }] : [];
  });
}

/** The opportunistic jobs of a machine that have to end for what is held there, those that lose the least first. */
function makeWay(machine: Machine, holds: readonly Hold[], at: number): { claim: string; machine: string }[] {
  const needed = holds.filter((hold) => hold.machine === machine.id);
  if (needed.length === 0) return [];
  let free = needed.reduce((left, { size }) => minus(left, size), machine.free);
  const short = () => free.cpus < 0 || free.memoryMb < 0 || free.diskKb < 0 || free.gpus < 0;
  const may = machine.busy.filter((one) => one.loses !== undefined && one.ends > at);
  for (const one of machine.busy) if (!may.includes(one) && one.ends <= at) free = added(free, one);
  const found: { claim: string; machine: string }[] = [];
  for (const one of may.sort((a, b) => (a.loses ?? 0) - (b.loses ?? 0))) {
    if (!short()) break;
    free = added(free, one);
    found.push({ claim: one.id, machine: machine.id });
  }
  return found;
}

function added(free: Size, { size }: Busy): Size {
  return {
    ...free,
    cpus: free.cpus + size.cpus,
    memoryMb: free.memoryMb + size.memoryMb,
    diskKb: free.diskKb + size.diskKb,
    gpus: free.gpus + size.gpus,
  };
}

function taken(machines: readonly Machine[], { id, parts, seconds }: Wish, found: readonly Seat[]): Machine[] {
  return machines.map((machine) => {
    const here = found.filter((seat) => seat.machine === machine.id).flatMap(({ part }) => parts[part]?.size ?? []);
    if (here.length === 0) return machine;
    const busy = here.map((size): Busy => ({ id, size, ends: seconds, loses: undefined }));
    return {
      ...machine,
      free: here.reduce((left, size) => minus(left, size), machine.free),
      busy: [...machine.busy, ...busy],
    };
  });
}

/** What a reservation holds: at its beginning the slots that are free first, and while it is in force, what is free. */
function setAside({ owner, part, from }: Reserved, machines: readonly Machine[]): Hold[] {
  const at = Math.max(0, from);
  const space = (machine: Machine) => freeThen(machine, at);
  const order = [...machines].sort((a, b) => b.free.cpus - a.free.cpus);
  let missing = part.count;
  return order.flatMap((machine) => {
    const times = Math.min(missing, spaceFor(part, [machine], space));
    missing -= times;
    return Array.from({ length: times }, () => ({
      machine: machine.id,
      size: part.size,
      at,
      for: reservationOf(owner),
    }));
  });
}
