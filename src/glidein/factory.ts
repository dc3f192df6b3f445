/** Waiting jobs of the pool with the same requests. */
export interface Demand {
  /** Describes the kind in words for users. */
  readonly kind: string;
  readonly idle: number;
  /** Per job. */
  readonly cpus: number;
  readonly memoryMb: number;
  /** Default 0. */
  readonly gpus?: number;
  /** Sites whose pilots its Requirements rule out, or that rule it out. */
  readonly refused?: ReadonlySet<string>;
  /** How long jobs of this kind have taken, in seconds; `undefined` if unknown. */
  readonly runSeconds?: number;
}

/** One site's pilots: what each offers, how many there are, how they have fared. Times in seconds. */
export interface Supply {
  readonly site: string;
  /** The most pilots at once, waiting and running. */
  readonly most: number;
  readonly cores: number;
  /** `undefined`: as much as any job requests. */
  readonly memoryMb?: number;
  /** Default 0. */
  readonly gpus?: number;
  readonly walltime: number;
  /** Whether the site answers. */
  readonly open: boolean;
  /** How long each pilot in the site's queue has waited so far. */
  readonly waiting: readonly number[];
  readonly running: number;
  /** What each running pilot has free. */
  readonly free: readonly Free[];
  /** The mean wait of pilots that started there. */
  readonly wait?: number;
  /** Pilots that failed there in the last hour. */
  readonly failures: number;
}

/** What one pilot has free; `undefined` is as much, or as long, as any job needs. */
export interface Free {
  readonly cpus: number;
  readonly memoryMb?: number;
  readonly gpus?: number;
  /** Seconds left of its allocation. */
  readonly left?: number;
}

export interface FactoryLimits {
  /** The most pilots at once, at all sites together. */
  readonly most: number;
  /** How many sites are asked for pilots for the same work: the first to start takes it. */
  readonly flood: number;
  /** Work that existing slots can do within this many seconds justifies no more slots. */
  readonly horizon: number;
  /** The most pilots that one round requests from one site. */
  readonly step: number;
}

export const LIMITS: FactoryLimits = { most: 1000, flood: 3, horizon: 600, step: 25 };

export interface FactoryPlan {
  /** Pilots to request, by site. */
  readonly start: ReadonlyMap<string, number>;
  /** Waiting pilots to withdraw, by site. */
  readonly withdraw: ReadonlyMap<string, number>;
  /** For users: why this many and no more. */
  readonly because: readonly string[];
}

/**
 * A pilot counts as stuck when it has waited this many times longer than others did; its work is requested elsewhere
 * too.
 */
const STUCK_FACTOR = 3;
const STUCK_LEAST = 600;
/** After this many failures within the hour, a site gets no more pilots; after a single one, at most one per round. */
const FAILURES = 3;
/** The part of a pilot's time that a job may take, leaving some for setup and clean-up. */
const FIT = 0.9;

/** How many pilots each site should get; depends only on its arguments. */
export function factory(
  demands: readonly Demand[],
  supplies: readonly Supply[],
  limits: FactoryLimits = LIMITS,
): FactoryPlan {
  const because: string[] = [];
  const start = new Map<string, number>();
  const withdraw = new Map<string, number>();
  const wanted = new Map<string, number>();
  const free = supplies.map((supply) => ({ supply, pilots: supply.free.map((one) => ({ ...one })) }));
  for (const demand of demands) {
    const fitting = supplies.filter((supply) => fits(demand, supply));
    if (fitting.length === 0) {
      if (demand.idle > 0) because.push(`${demand.kind}: no site has suitable pilots.`);
      continue;
    }
    let slots = slotsFor(demand, limits.horizon);
    // Free slots where the jobs would run take a part of them.
    for (const { supply, pilots: there } of free)
      if (fitting.includes(supply)) for (const pilot of there) slots -= taken(demand, pilot, slots);
    for (const supply of fitting) {
      const perPilot = Math.max(1, jobsThatFit(demand, { cpus: supply.cores, ...sized(supply) }));
      wanted.set(supply.site, (wanted.get(supply.site) ?? 0) + slots / perPilot);
    }
  }
  let total = supplies.reduce((sum, one) => sum + one.waiting.length + one.running, 0);
  // Sites where pilots started soonest come first; the same work is requested at a few of them.
  const order = [...supplies].sort((a, b) => rank(a) - rank(b) || (a.site < b.site ? -1 : 1));
  let asked = 0;
  for (const supply of order) {
    const need = Math.ceil((wanted.get(supply.site) ?? 0) - 1e-9);
    const hopeful = supply.waiting.filter((waited) => !isStuck(waited, supply)).length;
    const here = asked < limits.flood ? Math.max(0, need) : 0;
    if (here > 0 && supply.open && hopeful + supply.running > 0) asked++;
    if (hopeful >= here) {
      const surplus = here === 0 ? supply.waiting.length : hopeful - here;
      if (surplus > 0) withdraw.set(supply.site, surplus);
      if (surplus > 0) because.push(`${supply.site}: ${surplus} waiting ${pilots(surplus)} no longer needed.`);
      continue;
    }
    const why = closed(supply);
    if (why !== undefined) {
      because.push(`${supply.site}: ${why}`);
      continue;
    }
    const step = supply.failures > 0 ? 1 : limits.step;
    const allowed = Math.min(supply.most - supply.waiting.length - supply.running, limits.most - total);
    const more = Math.min(here - hopeful, step, allowed);
    if (more <= 0) {
      because.push(`${supply.site}: it has reached its limit of pilots.`);
      continue;
    }
    if (hopeful + supply.running === 0) asked++;
    total += more;
    start.set(supply.site, more);
    because.push(`${supply.site}: ${more} more ${pilots(more)} for waiting jobs.`);
  }
  return { start, withdraw, because };
}

/** Slots that do this work within the horizon; one for each job if its run time is unknown. */
function slotsFor({ idle, runSeconds }: Demand, horizon: number): number {
  if (runSeconds === undefined) return idle;
  return Math.min(idle, Math.ceil((idle * runSeconds) / horizon));
}

function fits(demand: Demand, supply: Supply): boolean {
  return (
    demand.idle > 0 &&
    !demand.refused?.has(supply.site) &&
    (demand.gpus ?? 0) <= (supply.gpus ?? 0) &&
    demand.cpus <= supply.cores &&
    (supply.memoryMb === undefined || demand.memoryMb <= supply.memoryMb) &&
    (demand.runSeconds ?? 0) <= supply.walltime * FIT
  );
}

/** How many such jobs fit into what is free. */
function jobsThatFit(demand: Demand, { cpus, memoryMb, gpus, left }: Free): number {
  if ((demand.runSeconds ?? 0) > (left ?? Number.POSITIVE_INFINITY) * FIT) return 0;
  const times = (one: number, of: number | undefined): number =>
    of === undefined || one <= 0 ? Number.POSITIVE_INFINITY : Math.floor(of / one);
  const most = [times(Math.max(1, demand.cpus), cpus), times(demand.memoryMb, memoryMb), times(demand.gpus ?? 0, gpus)];
  return Math.max(0, Math.min(...most));
}

/** How many of `slots` start in this pilot; reduces what it has free. */
function taken(demand: Demand, pilot: { -readonly [K in keyof Free]: Free[K] }, slots: number): number {
  const count = Math.min(slots, jobsThatFit(demand, pilot));
  pilot.cpus -= count * Math.max(1, demand.cpus);
  if (pilot.memoryMb !== undefined) pilot.memoryMb -= count * demand.memoryMb;
  if (pilot.gpus !== undefined) pilot.gpus -= count * (demand.gpus ?? 0);
  return count;
}

function sized({ memoryMb, gpus }: Supply): Omit<Free, 'cpus'> {
  return { ...(memoryMb === undefined ? {} : { memoryMb }), ...(gpus === undefined ? {} : { gpus }) };
}

function isStuck(waited: number, { wait }: Supply): boolean {
  return waited > Math.max(STUCK_LEAST, STUCK_FACTOR * (wait ?? 0));
}

/** Untested sites come after those known to be quick. */
function rank({ wait, open, failures }: Supply): number {
  return (open ? 0 : 1e12) + failures * 1e6 + (wait ?? 300);
}

function closed({ open, failures }: Supply): string | undefined {
  if (!open) return 'it does not answer now.';
  return failures >= FAILURES ? `${failures} pilots could not run there within the hour.` : undefined;
}

function pilots(count: number): string {
  return count === 1 ? 'pilot' : 'pilots';
}
