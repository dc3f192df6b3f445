import * as z from 'zod';
import { preemptionsOf } from '../job/preemptions.ts';
import { readNumber, readString } from '../job/values.ts';
import type { Read } from '../util/schema.ts';

const sum = z.number();

/** What the ended jobs of one owner, site and batch used. */
const usageRow = z.object({
  owner: z.string(),
  site: z.string(),
  batch: z.string(),
  jobs: sum,
  completed: sum,
  /** Seconds of run time; of run time times cores; of processor. */
  wall: sum,
  capacity: sum,
  cpu: sum,
  /** Seconds between submission and end in which nothing of it ran. */
  wait: sum,
  /** The sum of the jobs' wait ratios, and how many jobs are in each class of them: for the mean and the median. */
  ratio: sum,
  ratios: z.array(sum),
  checkpoints: sum,
  suspensions: sum,
  suspended: sum,
  restarts: sum,
  /** How often jobs had to leave a machine of the pool, by cause. */
  preemptions: z.record(z.string(), sum).default({}),
});
export type UsageRow = Read<typeof usageRow>;

/** What was seen of a machine of the pool, summed over the looks at it. */
const usageMachine = z.object({
  looks: sum,
  /** Looks at which its owner and its policy let it take jobs, or it ran some. */
  open: sum,
  /** Cores that it offers, that run jobs, and whose jobs are suspended. */
  cores: sum,
  busy: sum,
  suspended: sum,
});
export type UsageMachine = Read<typeof usageMachine>;

const usageHour = z.object({ looks: sum, idle: sum, running: sum, held: sum });

export const USAGE_DAY = z.object({
  /** `2026-11-24`, UTC: the day on which jobs left the queue. */
  day: z.string(),
  /** Unix seconds: every job that left the queue up to then is counted. */
  upTo: z.number(),
  rows: z.array(usageRow),
  /** How many jobs were idle, running and held, summed over the looks of each hour. */
  hours: z.array(usageHour),
  /** Processor seconds of the daemons, by name. */
  local: z.record(z.string(), sum),
  /** The machines of the pool, by name. */
  machines: z.record(z.string(), usageMachine).default({}),
});
export type UsageDay = Read<typeof USAGE_DAY>;

/** A day's file has no more rows: further batches of an owner at a site are counted together. */
const MOST_ROWS = 300;
const CLASSES = 24;
/** Class 0 holds ratios below this; each of the others begins at twice the one before. */
const FIRST = 0.001;

export function emptyDay(day: string): UsageDay {
  const hours = Array.from({ length: 24 }, () => ({ looks: 0, idle: 0, running: 0, held: 0 }));
  return { day, upTo: 0, rows: [], hours, local: {}, machines: {} };
}

export function dayOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

interface Ended {
  readonly id: { readonly cluster: number };
  readonly state: string;
  readonly retired: number;
  readonly attrs: { get(name: string): string | undefined };
}

/** What one ended job used; `undefined` for those that are not users' work: managers of DAGs, and pilots. */
export function rowOf({ id, state, retired, attrs }: Ended): UsageRow | undefined {
  const of = (name: string) => readNumber(attrs, name) ?? 0;
  if (of('JobUniverse') === 7 || attrs.get('GryphusPilot') !== undefined) return undefined;
  const wall = of('RemoteWallClockTime');
  const end = of('CompletionDate') || of('EnteredCurrentStatus') || retired;
  const wait = Math.max(0, end - of('QDate') - wall);
  const ratio = wall > 0 ? wait / wall : undefined;
  const ratios = Array.from({ length: CLASSES }, () => 0);
  if (ratio !== undefined) ratios[classOf(ratio)] = 1;
  return {
    owner: readString(attrs, 'Owner') ?? '',
    site: readString(attrs, 'GryphusSite') ?? '',
    batch: readString(attrs, 'JobBatchName') ?? String(id.cluster),
    jobs: 1,
    completed: state === 'completed' ? 1 : 0,
    wall,
    capacity: wall * Math.max(1, of('RequestCpus')),
    cpu: of('CumulativeRemoteUserCpu') + of('CumulativeRemoteSysCpu'),
    wait,
    ratio: ratio ?? 0,
    ratios,
    checkpoints: of('NumCkpts'),
    suspensions: of('TotalSuspensions'),
    suspended: of('CumulativeSuspensionTime'),
    restarts: Math.max(0, of('NumJobStarts') - 1),
    preemptions: preemptionsOf(attrs),
  };
}

/** Adds a row to the one of the same owner, site and batch. */
export function addRow(rows: UsageRow[], row: UsageRow, most = MOST_ROWS): void {
  const find = (batch: string) =>
    rows.findIndex((one) => one.owner === row.owner && one.site === row.site && one.batch === batch);
  const full = rows.length >= most && find(row.batch) < 0;
  const batch = full ? '' : row.batch;
  const at = find(batch);
  const known = rows[at];
  if (known) rows[at] = sumOfRows(known, row);
  else rows.push({ ...row, batch });
}

/** The names of the first. */
export function sumOfRows(a: UsageRow, b: UsageRow): UsageRow {
  return {
    ...a,
    jobs: a.jobs + b.jobs,
    completed: a.completed + b.completed,
    wall: a.wall + b.wall,
    capacity: a.capacity + b.capacity,
    cpu: a.cpu + b.cpu,
    wait: a.wait + b.wait,
    ratio: a.ratio + b.ratio,
    ratios: a.ratios.map((count, i) => count + (b.ratios[i] ?? 0)),
    checkpoints: a.checkpoints + b.checkpoints,
    suspensions: a.suspensions + b.suspensions,
    suspended: a.suspended + b.suspended,
    restarts: a.restarts + b.restarts,
    preemptions: sumOfNumbers(a.preemptions, b.preemptions),
  };
}

function sumOfNumbers(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const all: Record<string, number> = { ...a };
  for (const [name, one] of Object.entries(b)) all[name] = (all[name] ?? 0) + one;
  return all;
}

function classOf(ratio: number): number {
  return ratio < FIRST ? 0 : Math.min(CLASSES - 1, 1 + Math.floor(Math.log2(ratio / FIRST)));
}

/** The median wait ratio, to the class: within a factor of 1.5. 0 is less than a thousandth. */
export function medianOf(ratios: readonly number[]): number | undefined {
  const all = ratios.reduce((total, count) => total + count, 0);
  if (all === 0) return undefined;
  let below = 0;
  for (const [i, count] of ratios.entries()) {
    below += count;
    if (below * 2 >= all) return i === 0 ? 0 : FIRST * 2 ** (i - 1) * Math.SQRT2;
  }
  return undefined;
}
