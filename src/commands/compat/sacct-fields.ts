import { existsSync, readFileSync } from 'node:fs';
import { ownUser } from '../../util/own-user.ts';
import { Refused } from './options.ts';
import type { SlurmJob } from './slurm-job.ts';
import { duration, elapsed, moment } from './slurm-jobs.ts';

/** A job, or its batch step. */
export interface Row {
  readonly job: SlurmJob;
  readonly step: boolean;
  /** Unix seconds. */
  readonly now: number;
  /** What amounts of memory are written in; without it, that in which they were asked for. */
  readonly unit: Unit | undefined;
}

export type Unit = 'K' | 'M' | 'G' | 'T' | 'P';

export interface Column {
  readonly name: string;
  /** Negative: to the left. */
  readonly width: number;
  readonly value: (row: Row) => string;
}

type Value = Column['value'];

const ofJob =
  (value: Value): Value =>
  (row) =>
    row.step ? '' : value(row);
const ofStep =
  (value: Value): Value =>
  (row) =>
    row.step ? value(row) : '';
const nothing: Value = () => '';

const cpus: Value = ({ job }) => `${job.cpus}`;
const resident = ofStep(({ job, unit }) => (job.residentKb > 0 ? inUnit(job.residentKb, unit, 'K') : ''));
const frequency: Value = ({ step }) => (step ? '0' : 'Unknown');
const energy: Value = ({ job, step }) => (step || job.started === undefined ? '0' : '');
const waited = ({ job, now }: Row) => Math.max(0, (job.started ?? job.ended ?? now) - (job.eligible ?? now));

/** All fields of sacct 22.05 in its order; those that a job has no value of here are as sacct shows them without one. */
const FIELDS: readonly Column[] = table([
  ['Account', 10, ({ job }) => job.account],
  ['AdminComment', 15, nothing],
  ['AllocCPUS', 10, cpus],
  ['AllocNodes', 10, ({ job }) => (job.started === undefined ? '0' : `${job.nodes}`)],
  ['AllocTRES', 10, allocated],
  ['AssocID', 7, () => '0'],
  ['AveCPU', 10, nothing],
  ['AveCPUFreq', 10, ofStep(() => '0')],
  ...empty('AveDiskRead:14 AveDiskWrite:14 AvePages:10'),
  ['AveRSS', 10, resident],
  ...empty('AveVMSize:10 BlockID:16'),
  ['Cluster', 10, ({ job }) => job.partition],
  ['Comment', 14, ofJob(({ job }) => job.comment)],
  ['Constraints', 19, nothing],
  ['ConsumedEnergy', 14, energy],
  ['ConsumedEnergyRaw', 17, energy],
  ['Container', 19, nothing],
  ['CPUTime', 10, ({ job, now }) => duration(elapsed(job, now) * job.cpus, true)],
  ['CPUTimeRAW', 10, ({ job, now }) => `${elapsed(job, now) * job.cpus}`],
  ['DBIndex', -10, ({ job }) => `${job.raw}`],
  ['DerivedExitCode', 15, ofJob(() => '0:0')],
  ['Elapsed', 10, ({ job, now }) => duration(elapsed(job, now), true)],
  ['ElapsedRaw', 10, ({ job, now }) => `${elapsed(job, now)}`],
  ['Eligible', 19, ({ job }) => moment(job.eligible, 'Unknown')],
  ['End', 19, ({ job }) => moment(job.ended, 'Unknown')],
  ['ExitCode', 8, ({ job, step }) => (step && stoppedFromOutside(job) ? '0:15' : job.exit)],
  ['Flags', 19, nothing],
  ['GID', 6, ofJob(() => `${ownUser().gid}`)],
  ['Group', 9, ofJob(() => ownGroup())],
  ['JobID', -12, ({ job, step }) => `${job.id}${step ? '.batch' : ''}`],
  ['JobIDRaw', -12, ({ job, step }) => `${job.raw}${step ? '.batch' : ''}`],
  ['JobName', 10, ({ job, step }) => (step ? 'batch' : job.name)],
  ['Layout', 9, ofStep(() => 'Unknown')],
  ...empty('MaxDiskRead:12 MaxDiskReadNode:15 MaxDiskReadTask:15 MaxDiskWrite:12 MaxDiskWriteNode:16'),
  ...empty('MaxDiskWriteTask:16 MaxPages:8 MaxPagesNode:12 MaxPagesTask:14'),
  ['MaxRSS', 10, resident],
  ...empty('MaxRSSNode:10 MaxRSSTask:10 MaxVMSize:10 MaxVMSizeNode:14 MaxVMSizeTask:14 McsLabel:12'),
  ...empty('MinCPU:10 MinCPUNode:10 MinCPUTask:10'),
  ['NCPUS', 10, cpus],
  ['NNodes', 8, ({ job }) => `${job.nodes}`],
  ['NodeList', 15, ({ job }) => job.node || 'None assigned'],
  ['NTasks', 8, ofStep(() => '1')],
  ['Partition', 10, ofJob(({ job }) => job.partition)],
  ['Priority', 10, ofJob(({ job }) => `${job.priority}`)],
  ['QOS', 10, nothing],
  ['QOSRAW', 6, ofJob(() => '0')],
  ['Reason', 22, ofJob(({ job }) => job.reason)],
  ['ReqCPUFreq', 10, frequency],
  ['ReqCPUFreqGov', 13, frequency],
  ['ReqCPUFreqMax', 13, frequency],
  ['ReqCPUFreqMin', 13, frequency],
  ['ReqCPUS', 8, cpus],
  ['ReqMem', 10, ofJob(({ job, unit }) => inUnit(job.memoryMb, unit, 'M'))],
  ['ReqNodes', 8, ({ job }) => `${job.nodes}`],
  ['ReqTRES', 10, ofJob(({ job, unit }) => tres(job, inUnit(job.memoryMb, unit, 'M')))],
  ...empty('Reservation:20 ReservationId:8'),
  ['Reserved', 10, ofJob((row) => duration(waited(row), true))],
  ['ResvCPU', 10, ofJob((row) => duration(waited(row) * row.job.cpus, true))],
  ['ResvCPURAW', 10, ofJob((row) => `${waited(row) * row.job.cpus}`)],
  ['Start', 19, ({ job }) => moment(job.started, job.state === 'CANCELLED' ? 'None' : 'Unknown')],
  ['State', 10, stateText],
  ['Submit', 19, ({ job, step }) => moment(step ? job.started : job.submitted, 'Unknown')],
  ['SubmitLine', 20, nothing],
  ['Suspended', 10, () => '00:00:00'],
  ['SystemComment', 15, nothing],
  ['SystemCPU', 10, ({ job }) => cpu(job.systemCpu)],
  ['Timelimit', 10, ofJob(({ job }) => (job.limit === undefined ? 'UNLIMITED' : duration(job.limit * 60, true)))],
  ['TimelimitRaw', 10, ofJob(({ job }) => (job.limit === undefined ? '' : `${job.limit}`))],
  ['TotalCPU', 10, ({ job }) => cpu(job.userCpu + job.systemCpu)],
  ...empty('TRESUsageInAve:14 TRESUsageInMax:14 TRESUsageInMaxNode:18 TRESUsageInMaxTask:18 TRESUsageInMin:14'),
  ...empty('TRESUsageInMinNode:18 TRESUsageInMinTask:18 TRESUsageInTot:14 TRESUsageOutAve:15 TRESUsageOutMax:15'),
  ...empty('TRESUsageOutMaxNode:19 TRESUsageOutMaxTask:19 TRESUsageOutMin:15 TRESUsageOutMinNode:19'),
  ...empty('TRESUsageOutMinTask:19 TRESUsageOutTot:15'),
  ['UID', 6, ofJob(() => `${ownUser().uid}`)],
  ['User', 9, ofJob(({ job }) => job.user)],
  ['UserCPU', 10, ({ job }) => cpu(job.userCpu)],
  ['WCKey', 10, nothing],
  ['WCKeyID', 10, ofJob(() => '0')],
  ['WorkDir', 20, ofJob(({ job }) => job.directory)],
]);

const FORMATS = {
  usual: 'JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode',
  brief: 'JobID,State,ExitCode',
  long: 'JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,ReqTRES,AllocTRES,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutAve,TRESUsageOutTot',
} as const;

/** `JobID,State%20`, in upper or lower case, abbreviated as long as one field begins so; or a format of sacct's own. */
export function columnsOf(format: keyof typeof FORMATS | { readonly given: string }): Column[] {
  return (typeof format === 'string' ? FORMATS[format] : format.given).split(',').map((text) => {
    const [written = '', width] = text.split('%');
    const low = written.toLowerCase();
    // As in sacct, the first that begins so.
    const field = FIELDS.find(({ name }) => low !== '' && name.toLowerCase().startsWith(low));
    const exact = FIELDS.find(({ name }) => name.toLowerCase() === low) ?? field;
    if (exact === undefined) throw new Refused(`Invalid field requested: "${written}"`);
    return width === undefined ? exact : { ...exact, width: Number(width) };
  });
}

/** Four names a line, as sacct lists them. */
export function helpFormat(): string {
  const lines = Array.from({ length: Math.ceil(FIELDS.length / 4) }, (_, i) => FIELDS.slice(4 * i, 4 * i + 4));
  return lines.map((line) => `${line.map(({ name }) => name.padEnd(19)).join(' ')}\n`).join('');
}

/** A value that is too long ends in `+`; a heading is cut. */
export function fitted(text: string, width: number, mark = '+'): string {
  const most = Math.abs(width);
  const cut = text.length > most ? `${text.slice(0, most - mark.length)}${mark}` : text;
  return width < 0 ? cut.padEnd(most) : cut.padStart(most);
}

function table(rows: readonly (readonly [string, number, Value])[]): Column[] {
  return rows.map(([name, width, value]) => ({ name, width, value }));
}

/** Fields without a value here: `NAME:WIDTH NAME:WIDTH`. */
function empty(fields: string): [string, number, Value][] {
  return fields.split(' ').map((one) => {
    const [name = '', width] = one.split(':');
    return [name, Number(width), nothing];
  });
}

/** Of a step, memory is not allocated. */
function allocated({ job, step, unit }: Row): string {
  if (job.started === undefined) return '';
  return step ? `cpu=${job.cpus},mem=0,node=${job.nodes}` : tres(job, inUnit(job.memoryMb, unit, 'M'));
}

/** `00:01`, `00:00.123`, `01:02:03`. */
function cpu(seconds: number): string {
  if (seconds === 0 || seconds >= 3600) return duration(Math.floor(seconds), true);
  const two = (n: number) => String(n).padStart(2, '0');
  const thousandths = String(Math.floor((seconds % 1) * 1000)).padStart(3, '0');
  return `${two(Math.floor(seconds / 60))}:${two(Math.floor(seconds % 60))}.${thousandths}`;
}

/** In sacct's order. */
function tres({ cpus, gpus, nodes }: SlurmJob, memory: string): string {
  const gpu = gpus === 0 ? '' : `gres/gpu=${gpus},`;
  return `billing=${cpus},cpu=${cpus},${gpu}mem=${memory},node=${nodes}`;
}

/** The name of the group of jobs, or its number. */
export function ownGroup(): string {
  const gid = `${ownUser().gid}`;
  const lines = existsSync(GROUPS) ? readFileSync(GROUPS, 'utf8').split('\n') : [];
  return lines.map((line) => line.split(':')).find((parts) => parts[2] === gid)?.[0] ?? gid;
}

function stoppedFromOutside({ state }: SlurmJob): boolean {
  return state === 'CANCELLED' || state === 'TIMEOUT';
}

/** The step of a job that was stopped, or ended by a signal, is cancelled. */
function stateText({ job, step }: Row): string {
  if (!step) return job.state === 'CANCELLED' ? `CANCELLED by ${ownUser().uid}` : job.state;
  const signalled = job.state === 'FAILED' && !job.exit.endsWith(':0');
  return signalled || stoppedFromOutside(job) ? 'CANCELLED' : job.state;
}

const GROUPS = '/etc/group';
const UNITS = 'KMGTP';

/** `64M`; `0.06G`. `from`: the unit of `amount`. */
function inUnit(amount: number, unit: Unit | undefined, from: Unit): string {
  if (unit === undefined) return `${amount}${from}`;
  const scaled = amount * 1024 ** (UNITS.indexOf(from) - UNITS.indexOf(unit));
  return `${Number.isInteger(scaled) ? scaled : scaled.toFixed(2)}${unit}`;
}
