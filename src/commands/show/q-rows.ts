import type { AdText, JobView } from '../../index.ts';
import { unquote } from '../../job/json-ads.ts';
import { numberOf, stringOf } from './ad.ts';
import { duration, shortDate } from './dates.ts';
import { cut, padEnd, type Width } from './width.ts';

/** A view that lists jobs one per line. */
export interface View {
  readonly head: string;
  /** `who`: include the owner. */
  row(job: JobView, now: number, who: boolean): string;
  /** Attributes that it needs besides those of the id and the owner. */
  readonly reads: readonly string[];
  /** Which jobs it lists; if absent, all. */
  readonly only?: (ad: AdText) => boolean;
  /** Without totals, as in HTCondor. */
  readonly bare?: boolean;
}

/** Widths of the id, with which every view begins, and of the owner after it. */
const START = 9;
const OWNER = 15;
/** On narrower terminals the owner, usually the reader, is left out in favour of the end of the line. */
export const NARROW = 78;

const SHARED = ['Owner', 'JobStatus', 'JobUniverse', 'TransferringInput'] as const;
const RUN_TIME = ['QDate', 'RemoteWallClockTime', 'JobCurrentStartDate'] as const;
const COMMAND = ['Cmd', 'Args', 'Arguments'] as const;

export const VIEWS = {
  nobatch: {
    head: ' ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD',
    row: ({ id, state, ad }, now, who) =>
      `${start(id, ad, who)}${submitted(ad)} ${runTime(ad, now).padStart(12)} ${letter(state, ad).padEnd(2)} ${String(numberOf(ad, 'JobPrio') ?? 0).padEnd(3)} ${size(ad).padStart(4)} ${command(ad)}`,
    reads: [...RUN_TIME, ...COMMAND, 'JobPrio', 'ImageSize', 'MemoryUsage', 'ResidentSetSize'],
  },
  hold: {
    head: ' ID      OWNER          HELD_SINCE  CODE/SUB HOLD_REASON',
    row: ({ id, ad }, _now, who) => {
      const subcode = numberOf(ad, 'HoldReasonSubCode');
      const code = String(numberOf(ad, 'HoldReasonCode') ?? '').padStart(4);
      const since = shortDate(numberOf(ad, 'EnteredCurrentStatus') ?? 0);
      return `${start(id, ad, who)}${since} ${code}${subcode === undefined ? '    ' : `/${String(subcode).padEnd(3)}`} ${stringOf(ad, 'HoldReason') ?? ''}`;
    },
    reads: ['EnteredCurrentStatus', 'HoldReason', 'HoldReasonCode', 'HoldReasonSubCode'],
    only: (ad) => numberOf(ad, 'JobStatus') === 5,
  },
  run: {
    head: ' ID      OWNER            SUBMITTED     RUN_TIME HOST(S)',
    row: ({ id, ad }, now, who) =>
      `${start(id, ad, who)}${submitted(ad)} ${runTime(ad, now).padStart(12)} ${stringOf(ad, 'RemoteHost') ?? stringOf(ad, 'GridResource') ?? '[????????????????]'}`,
    reads: [...RUN_TIME, 'RemoteHost', 'GridResource'],
    only: (ad) => [2, 6, 7].includes(numberOf(ad, 'JobStatus') ?? 0),
    bare: true,
  },
  idle: {
    head: ' ID      OWNER          UNIVERSE  CPUS MEMORY STARTS LAST_HOST',
    row: ({ id, ad }, _now, who) => {
      const cell = (name: string, width: number) => String(numberOf(ad, name) ?? 0).padStart(width);
      return `${start(id, ad, who)}${(UNIVERSES[numberOf(ad, 'JobUniverse') ?? 5] ?? '?').padEnd(8)} ${cell('RequestCpus', 5)} ${cell('RequestMemory', 6)} ${cell('NumJobStarts', 6)} ${stringOf(ad, 'LastRemoteHost') ?? 'undefined'}`;
    },
    reads: ['RequestCpus', 'RequestMemory', 'NumJobStarts', 'LastRemoteHost'],
    only: (ad) => numberOf(ad, 'JobStatus') === 1,
    bare: true,
  },
  grid: {
    head: ' ID      OWNER          STATUS     GRID->MANAGER    HOST       GRID_JOB_ID',
    row: ({ id, ad }, _now, who) => {
      const resource = (stringOf(ad, 'GridResource') ?? '').split(' ');
      const status = unquote(ad['GridJobStatus'] ?? '') ?? '';
      const [type = '', manager = '?', host = '?'] =
        resource[0] === 'batch' ? resource : [resource[0], '?', resource[1]];
      const remote = (stringOf(ad, 'GridJobId') ?? '').split(' ').at(-1) ?? '';
      return `${start(id, ad, who)}${status.padEnd(10)} ${`${type}->${manager}`.padEnd(16)} ${host.padEnd(10)} ${remote}`.trimEnd();
    },
    reads: ['GridResource', 'GridJobStatus', 'GridJobId'],
    only: (ad) => stringOf(ad, 'GridResource') !== undefined,
    bare: true,
  },
} as const satisfies Record<string, View>;

const UNIVERSES: Readonly<Record<number, string>> = { 5: 'Vanilla', 7: 'Scheduler', 9: 'Grid', 12: 'Local' };

/** A view's headings. */
export function viewHead(view: View, width: Width): string {
  return cut(owned(width) ? view.head : view.head.slice(0, START) + view.head.slice(START + OWNER), width);
}

/** A line for each job. `now`: Unix seconds. */
export function viewRows(view: View, jobs: readonly JobView[], now: number, width: Width): string[] {
  const who = owned(width);
  return jobs.map((job) => cut(view.row(job, now, who), width));
}

function owned(width: Width): boolean {
  return width === undefined || width >= NARROW;
}

export function viewAttributes(view: View): string[] {
  return [...SHARED, ...view.reads];
}

function start(id: JobView['id'], ad: AdText, who: boolean): string {
  const job = `${String(id.cluster).padStart(4)}.${String(id.proc).padEnd(3)} `;
  return who ? `${job}${padEnd(stringOf(ad, 'Owner') ?? '?', OWNER - 1)} ` : job;
}

function submitted(ad: AdText): string {
  return shortDate(numberOf(ad, 'QDate') ?? 0);
}

/** All runs together, including the current one while the job runs. */
export function runTime(ad: AdText, now: number): string {
  const past = numberOf(ad, 'RemoteWallClockTime') ?? 0;
  // The run time of a suspended job goes on too.
  const on = numberOf(ad, 'JobStatus') === 2 || numberOf(ad, 'JobStatus') === 7;
  const since = on ? numberOf(ad, 'JobCurrentStartDate') : undefined;
  return duration(past + (since === undefined ? 0 : Math.max(0, now - since)));
}

/** JobStatus as one letter; `?` if the site says nothing about the job, `<` while its input is on the way there. */
export function letter(state: JobView['state'] | undefined, ad: AdText): string {
  if (state === 'preparing' && ad['TransferringInput'] === 'true') return '<';
  return state?.startsWith('unknown') ? '?' : (' IRXCH>S'[numberOf(ad, 'JobStatus') ?? 0] ?? ' ');
}

/** MB: memory in use if known (MemoryUsage's own rule), otherwise the image. */
export function size(ad: AdText): string {
  const resident = numberOf(ad, 'ResidentSetSize');
  const used = numberOf(ad, 'MemoryUsage') ?? (resident === undefined ? undefined : Math.ceil(resident / 1024));
  return (used ?? (numberOf(ad, 'ImageSize') ?? 0) / 1024).toFixed(1);
}

/** The paths of Node and of our program mean nothing to the reader. */
const DAG_MANAGER = '/dag-manager.js';
const DAG_WORDS = /\/dag-manager\.js'? (.*-Dag .*)$/s;

/** The program without its directory, and its arguments as written. */
export function command(ad: AdText): string {
  const program = (stringOf(ad, 'Cmd') ?? '').split('/').at(-1) ?? '';
  const args = stringOf(ad, 'Args') ?? stringOf(ad, 'Arguments') ?? '';
  const dag = args.includes(DAG_MANAGER) ? DAG_WORDS.exec(args)?.[1] : undefined;
  if (dag !== undefined) return `dagman ${dag}`;
  return args === '' ? program : `${program} ${args}`;
}
