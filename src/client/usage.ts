import { dayOf, medianOf, sumOfRows, type UsageDay, type UsageMachine, type UsageRow } from '../queue/usage-day.ts';
import { newUsage, UsageFiles } from '../queue/usage-files.ts';
import { sumOfMachines } from '../queue/usage-machines.ts';
import type { History } from '../queue/history-types.ts';

/** What the sums of a usage report are for. */
export type UsageBy = 'owner' | 'site' | 'month' | 'batch';

/** What jobs used, for one owner, site, month or batch, or all. */
export interface UsageSum {
  readonly name: string;
  readonly jobs: number;
  readonly completed: number;
  /** Core hours, and processor hours. */
  readonly capacityHours: number;
  readonly cpuHours: number;
  /** Mean run time of a job, in hours. */
  readonly demandHours: number;
  /** Processor seconds that our daemons spent for it, by its part of the jobs. */
  readonly localSeconds: number;
  /** The capacity for each second of that. */
  readonly leverage?: number;
  readonly waitRatio?: { readonly mean: number; readonly median: number };
  readonly checkpoints: number;
  readonly suspensions: number;
  readonly suspendedHours: number;
  readonly restarts: number;
  /** How often they had to leave a machine of the pool, by cause: `owner`, `rank`, `priority` and others. */
  readonly preemptions: Readonly<Record<string, number>>;
}

/** A machine of the pool while it was connected. */
export interface MachineUsage {
  readonly name: string;
  /** Hours in which it was seen, and the core hours that it offered. */
  readonly hours: number;
  readonly coreHours: number;
  /** The part of the time in which its owner let it take jobs. */
  readonly availability: number;
  /** The parts of its cores that ran jobs, and whose jobs were suspended. */
  readonly utilization: number;
  readonly suspended: number;
}

/** What the jobs that ended in a period used, and what the daemons spent for them. */
export interface UsageReport {
  /** The first and last day, `2026-11-24`. */
  readonly from: string;
  readonly to: string;
  readonly all: UsageSum;
  /** Owners who used more than an equal share of the capacity, and the others. */
  readonly heavy: UsageSum;
  readonly light: UsageSum;
  readonly by: readonly UsageSum[];
  /** Processor seconds of each daemon. */
  readonly local: readonly { readonly daemon: string; readonly seconds: number }[];
  /** The machines of the pool, the largest first. */
  readonly machines: readonly MachineUsage[];
  /** Mean numbers of jobs at each hour of the day (UTC). */
  readonly hours: readonly { readonly idle: number; readonly running: number; readonly held: number }[];
}

/** Everything that was used on these days, up to now. */
export async function usageOf(
  stateDir: string,
  history: Pick<History, 'read'>,
  by: UsageBy,
  since: string,
): Promise<UsageReport> {
  const files = new UsageFiles(stateDir);
  const days = new Map(files.days().map((day) => [day, files.read(day)]));
  for (const day of await newUsage(files, history, Math.floor(Date.now() / 1000))) days.set(day.day, day);
  return reportOf(
    [...days.values()].filter(({ day }) => day >= since),
    by,
  );
}

export function reportOf(days: readonly UsageDay[], by: UsageBy): UsageReport {
  const named = days.flatMap((day) => day.rows.map((row) => ({ row, day })));
  const local = new Map<string, number>();
  for (const day of days)
    for (const [name, seconds] of Object.entries(day.local)) local.set(name, (local.get(name) ?? 0) + seconds);
  const spent = [...local.values()].reduce((sum, one) => sum + one, 0);
  const jobs = named.reduce((sum, { row }) => sum + row.jobs, 0);
  const sum = (name: string, rows: readonly UsageRow[]) => sumOf(name, rows, jobs === 0 ? 0 : spent / jobs);
  const groups = grouped(named, by);
  const owners = [...grouped(named, 'owner')].map(([name, rows]) => ({
    name,
    rows,
    capacity: rows.reduce((all, row) => all + row.capacity, 0),
  }));
  const share = owners.reduce((all, { capacity }) => all + capacity, 0) / Math.max(1, owners.length);
  const rowsOf = (heavy: boolean) =>
    owners.filter(({ capacity }) => owners.length > 1 && capacity > share === heavy).flatMap(({ rows }) => rows);
  const hours = Array.from({ length: 24 }, (_, hour) => meanHour(days.flatMap((day) => day.hours[hour] ?? [])));
  const names = days.map(({ day }) => day).sort();
  const today = dayOf(Date.now() / 1000);
  return {
    from: names[0] ?? today,
    to: names.at(-1) ?? today,
    all: sum(
      'all',
      named.map(({ row }) => row),
    ),
    heavy: sum('heavy', rowsOf(true)),
    light: sum('light', owners.length > 1 ? rowsOf(false) : named.map(({ row }) => row)),
    by: [...groups].map(([name, rows]) => sum(name, rows)).sort((a, b) => b.capacityHours - a.capacityHours),
    local: [...local].map(([daemon, seconds]) => ({ daemon, seconds })).sort((a, b) => b.seconds - a.seconds),
    machines: machinesOf(days),
    hours,
  };
}

/** Looks in an hour. */
const LOOKS = 60;

function machinesOf(days: readonly UsageDay[]): MachineUsage[] {
  const all = new Map<string, UsageMachine>();
  for (const { machines } of days)
    for (const [name, one] of Object.entries(machines)) {
      const known = all.get(name);
      all.set(name, known ? sumOfMachines(known, one) : one);
    }
  const part = (of: number, whole: number) => (whole === 0 ? 0 : Math.min(1, of / whole));
  const rows = [...all].map(([name, { looks, open, cores, busy, suspended }]) => ({
    name,
    hours: looks / LOOKS,
    coreHours: cores / LOOKS,
    availability: part(open, looks),
    utilization: part(busy, cores),
    suspended: part(suspended, cores),
  }));
  return rows.sort((a, b) => b.coreHours - a.coreHours);
}

function grouped(
  named: readonly { readonly row: UsageRow; readonly day: UsageDay }[],
  by: UsageBy,
): Map<string, UsageRow[]> {
  const groups = new Map<string, UsageRow[]>();
  for (const { row, day } of named) {
    const name = by === 'month' ? day.day.slice(0, 7) : by === 'batch' && row.batch === '' ? '(others)' : row[by];
    const rows = groups.get(name) ?? [];
    rows.push(row);
    groups.set(name, rows);
  }
  return groups;
}

function sumOf(name: string, rows: readonly UsageRow[], localForEach: number): UsageSum {
  const [first, ...rest] = rows;
  if (!first) return { name, ...NOTHING };
  const all = rest.reduce(sumOfRows, first);
  const counted = all.ratios.reduce((sum, one) => sum + one, 0);
  const median = medianOf(all.ratios);
  const localSeconds = all.jobs * localForEach;
  return {
    name,
    jobs: all.jobs,
    completed: all.completed,
    capacityHours: all.capacity / 3600,
    cpuHours: all.cpu / 3600,
    demandHours: all.jobs === 0 ? 0 : all.wall / 3600 / all.jobs,
    localSeconds,
    ...(localSeconds > 0 ? { leverage: all.capacity / localSeconds } : {}),
    ...(median === undefined ? {} : { waitRatio: { mean: all.ratio / counted, median } }),
    checkpoints: all.checkpoints,
    suspensions: all.suspensions,
    suspendedHours: all.suspended / 3600,
    restarts: all.restarts,
    preemptions: all.preemptions,
  };
}

const NOTHING = {
  jobs: 0,
  completed: 0,
  capacityHours: 0,
  cpuHours: 0,
  demandHours: 0,
  localSeconds: 0,
  checkpoints: 0,
  suspensions: 0,
  suspendedHours: 0,
  restarts: 0,
  preemptions: {},
} as const;

function meanHour(looks: readonly UsageDay['hours'][number][]): UsageReport['hours'][number] {
  const all = looks.reduce((sum, { looks: count }) => sum + count, 0);
  const mean = (of: (one: UsageDay['hours'][number]) => number) =>
    all === 0 ? 0 : looks.reduce((sum, one) => sum + of(one), 0) / all;
  return { idle: mean(({ idle }) => idle), running: mean(({ running }) => running), held: mean(({ held }) => held) };
}
