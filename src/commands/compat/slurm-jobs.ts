import type { AdText, Gryphus, JobView, QueryRequest } from '../../index.ts';
import { inAd, readBoolean, readNumber, readString } from '../../job/values.ts';
import { Refused } from './options.ts';

/** As in src/batch-script/array.ts: an array's job has the number cluster × 10⁷ + index. */
const JOB_NUMBERS = 10_000_000;

/** All states that Slurm 22.05 knows, in its order, with their codes. */
const STATES: ReadonlyMap<string, string> = new Map(
  'PENDING:PD RUNNING:R SUSPENDED:S COMPLETED:CD CANCELLED:CA FAILED:F TIMEOUT:TO NODE_FAIL:NF PREEMPTED:PR BOOT_FAIL:BF DEADLINE:DL OUT_OF_MEMORY:OOM COMPLETING:CG CONFIGURING:CF RESIZING:RS RESV_DEL_HOLD:RD REQUEUED:RQ REQUEUE_FED:RF REQUEUE_HOLD:RH REVOKED:RV SIGNALING:SI SPECIAL_EXIT:SE STAGE_OUT:SO STOPPED:ST'
    .split(' ')
    .map((one) => one.split(':') as [string, string]),
);
export const STATE_NAMES = [...STATES.keys()];

/** The states that a job can have here. */
export type SlurmState =
  | 'PENDING'
  | 'RUNNING'
  | 'SUSPENDED'
  | 'COMPLETING'
  | 'COMPLETED'
  | 'CANCELLED'
  | 'FAILED'
  | 'TIMEOUT'
  | 'NODE_FAIL'
  | 'OUT_OF_MEMORY';

/** A state's name, by that or by its code, in upper or lower case; `undefined` if Slurm knows no such state. */
export function stateNamed(text: string): string | undefined {
  const word = text.toUpperCase();
  return STATE_NAMES.find((name) => name === word || STATES.get(name) === word);
}

/** A job in Slurm's terms. Times are Unix seconds. */
export interface SlurmJob {
  readonly cluster: number;
  readonly proc: number;
  readonly task: number | undefined;
  /** `12`, `12_3`. */
  readonly id: string;
  readonly raw: number;
  readonly state: SlurmState;
  readonly code: string;
  readonly reason: string;
  readonly name: string;
  readonly user: string;
  readonly partition: string;
  readonly account: string;
  readonly cpus: number;
  readonly gpus: number;
  readonly nodes: number;
  readonly memoryMb: number;
  /** Minutes. */
  readonly limit: number | undefined;
  readonly submitted: number;
  /** When it could first have started; a job that is held, or was until its end, never could. */
  readonly eligible: number | undefined;
  readonly started: number | undefined;
  readonly ended: number | undefined;
  readonly node: string;
  readonly exit: string;
  readonly directory: string;
  readonly command: string;
  readonly output: string;
  readonly error: string;
  readonly comment: string;
  readonly dependency: string;
  readonly priority: number;
  /** For an array: its indices, and the most at once. */
  readonly array: string;
  readonly starts: number;
  /** Held in the queue, even if its state is an end. */
  readonly held: boolean;
  /** Seconds of the processor. */
  readonly userCpu: number;
  readonly systemCpu: number;
  /** The most memory that it used. */
  readonly residentKb: number;
}

export const ATTRIBUTES =
  'JobStatus LastJobStatus HoldReasonCode HoldReason GryphusDependency GryphusArrayTask GryphusArray JobBatchName Cmd Owner BatchQueue GryphusSite BatchProject GryphusAccount RequestCpus RequestGPUs MachineCount RequestMemory BatchRuntime QDate JobCurrentStartDate JobStartDate CompletionDate EnteredCurrentStatus RemoteHost LastRemoteHost ExitCode ExitBySignal ExitSignal Iwd Out Err JobDescription JobPrio NumJobStarts RemoteUserCpu RemoteSysCpu ResidentSetSize'.split(
    ' ',
  );

export function slurmJob({ id, ad }: Pick<JobView, 'id' | 'ad'>): SlurmJob {
  const get = inAd(ad);
  const task = readNumber(get, 'GryphusArrayTask') ?? (id.proc > 0 ? id.proc : undefined);
  const state = stateOf(ad);
  const started = readNumber(get, 'JobCurrentStartDate') ?? readNumber(get, 'JobStartDate');
  const live = state === 'PENDING' || state === 'RUNNING' || state === 'SUSPENDED' || state === 'COMPLETING';
  const signal = readBoolean(get, 'ExitBySignal') === true ? (readNumber(get, 'ExitSignal') ?? 0) : 0;
  const seconds = readNumber(get, 'BatchRuntime');
  const submitted = readNumber(get, 'QDate') ?? 0;
  const neverFree = started === undefined && waitsOrWaited(get);
  const command = readString(get, 'Cmd') ?? '';
  return {
    cluster: id.cluster,
    proc: id.proc,
    task,
    id: task === undefined ? `${id.cluster}` : `${id.cluster}_${task}`,
    raw: task === undefined ? id.cluster : id.cluster * JOB_NUMBERS + task,
    state,
    code: STATES.get(state) ?? '',
    reason: state === 'PENDING' || neverFree ? reasonOf(ad) : 'None',
    name: readString(get, 'JobBatchName') ?? command.slice(command.lastIndexOf('/') + 1),
    user: readString(get, 'Owner') ?? '',
    partition: readString(get, 'BatchQueue') ?? readString(get, 'GryphusSite') ?? '',
    account: readString(get, 'BatchProject') ?? readString(get, 'GryphusAccount') ?? '',
    cpus: readNumber(get, 'RequestCpus') ?? 1,
    gpus: readNumber(get, 'RequestGPUs') ?? 0,
    nodes: readNumber(get, 'MachineCount') ?? 1,
    memoryMb: readNumber(get, 'RequestMemory') ?? 0,
    limit: seconds === undefined ? undefined : Math.ceil(seconds / 60),
    submitted,
    eligible: neverFree ? undefined : submitted,
    started: state === 'PENDING' ? undefined : started,
    ended: live ? undefined : readNumber(get, 'CompletionDate') || readNumber(get, 'EnteredCurrentStatus'),
    node:
      state === 'PENDING'
        ? ''
        : ((readString(get, 'RemoteHost') ?? readString(get, 'LastRemoteHost') ?? '').split('@').at(-1) ?? ''),
    exit: signal > 0 ? `0:${signal}` : `${live ? 0 : (readNumber(get, 'ExitCode') ?? 0)}:0`,
    directory: readString(get, 'Iwd') ?? '',
    command,
    output: readString(get, 'Out') ?? '',
    error: readString(get, 'Err') ?? '',
    comment: readString(get, 'JobDescription') ?? '',
    dependency: readString(get, 'GryphusDependency') ?? '',
    priority: readNumber(get, 'JobPrio') ?? 0,
    array: readString(get, 'GryphusArray') ?? '',
    starts: readNumber(get, 'NumJobStarts') ?? 0,
    held: readNumber(get, 'JobStatus') === 5,
    userCpu: readNumber(get, 'RemoteUserCpu') ?? 0,
    systemCpu: readNumber(get, 'RemoteSysCpu') ?? 0,
    residentKb: readNumber(get, 'ResidentSetSize') ?? 0,
  };
}

/** HTCondor's hold codes of a job that waits; any other says how it failed, after which Slurm's job has ended. */
const WAITS = new Set([1, 15]);
const FAILURES: Readonly<Record<number, SlurmState>> = {
  34: 'OUT_OF_MEMORY',
  35: 'NODE_FAIL',
  46: 'TIMEOUT',
  47: 'TIMEOUT',
};

function stateOf(ad: AdText): SlurmState {
  const get = inAd(ad);
  switch (readNumber(get, 'JobStatus')) {
    case 2:
      return 'RUNNING';
    case 3:
      return 'CANCELLED';
    case 4:
      return readBoolean(get, 'ExitBySignal') === true || (readNumber(get, 'ExitCode') ?? 1) !== 0
        ? 'FAILED'
        : 'COMPLETED';
    case 5: {
      const code = readNumber(get, 'HoldReasonCode') ?? 0;
      return WAITS.has(code) ? 'PENDING' : (FAILURES[code] ?? 'FAILED');
    }
    case 6:
      return 'COMPLETING';
    case 7:
      return 'SUSPENDED';
    case undefined:
    default:
      return 'PENDING';
  }
}

/** Held for its user or a dependency; or removed while it was. */
function waitsOrWaited(get: ReturnType<typeof inAd>): boolean {
  const status = readNumber(get, 'JobStatus');
  const held = status === 5 || (status === 3 && readNumber(get, 'LastJobStatus') === 5);
  return held && WAITS.has(readNumber(get, 'HoldReasonCode') ?? 0);
}

function reasonOf(ad: AdText): string {
  const get = inAd(ad);
  if (!waitsOrWaited(get)) return 'Priority';
  if (!get.get('GryphusDependency') || readNumber(get, 'HoldReasonCode') !== 15) return 'JobHeldUser';
  return (readString(get, 'HoldReason') ?? '').startsWith('DependencyNever')
    ? 'DependencyNeverSatisfied'
    : 'Dependency';
}

/** A job, a whole array, or one task of it; or a step of them. */
export interface Named {
  readonly cluster: number;
  readonly tasks?: ReadonlySet<number>;
  readonly step?: string;
  readonly text: string;
}

/**
 * `12`, `12_3`, `12_[1-3,7]`, an array job's number, and steps (`12.batch`), apart by commas. `wrong`: the error for a word
 * that is none of these.
 */
export function namedJobs(list: string, wrong = (word: string) => new Refused(`Invalid job id ${word}`)): Named[] {
  return list
    .split(/,(?![^[]*\])/)
    .filter((one) => one !== '')
    .map((text) => {
      const [, cluster, one, range, step] =
        /^(\d{1,15})(?:_(?:(\d{1,8})|\[([\d,\-%:]+)\]))?(?:\.(\w+))?$/.exec(text) ?? [];
      if (cluster === undefined) throw wrong(text);
      const number = Number(cluster);
      const inArray = one === undefined && range === undefined && number >= JOB_NUMBERS;
      const task = inArray ? number % JOB_NUMBERS : one === undefined ? undefined : Number(one);
      const tasks = task === undefined ? range && expand(range) : new Set([task]);
      return {
        cluster: inArray ? Math.floor(number / JOB_NUMBERS) : number,
        ...(tasks ? { tasks } : {}),
        ...(step === undefined ? {} : { step }),
        text,
      };
    });
}

/** `1-3,7`, `1-9:2`, up to a million. */
export function expand(range: string): Set<number> {
  const found = new Set<number>();
  for (const part of range.replace(/%.*/, '').split(',')) {
    const [span = '', step = '1'] = part.split(':');
    const [from = 0, to = from] = span.split('-').map(Number);
    for (let i = from; i <= to && found.size < 1_000_000; i += Math.max(1, Number(step))) found.add(i);
  }
  return found;
}

export function isNamed(job: SlurmJob, named: readonly Named[] | undefined): boolean {
  if (named === undefined) return true;
  return named.some(
    ({ cluster, tasks }) => cluster === job.cluster && (tasks === undefined || tasks.has(job.task ?? 0)),
  );
}

/** Jobs in the queue, or wherever they are. */
export async function* slurmJobs(
  gryphus: Gryphus,
  named: readonly Named[] | undefined,
  where: 'queue' | 'everywhere',
  selection: QueryRequest = {},
): AsyncGenerator<SlurmJob> {
  const request = {
    ...selection,
    ...(named && { clusters: [...new Set(named.map(({ cluster }) => cluster))] }),
    attributes: ATTRIBUTES,
  };
  if (where === 'queue') {
    for await (const some of gryphus.queryChunks(request))
      for (const view of some) {
        const job = slurmJob(view);
        if (isNamed(job, named)) yield job;
      }
  } else {
    for await (const view of gryphus.jobs(request)) {
      const job = slurmJob(view);
      if (isNamed(job, named)) yield job;
    }
  }
}

/** `1-02:03:04`, `5:06`. */
export function duration(seconds: number, hours = false): string {
  const [d, h, m, s] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  const two = (n: number) => String(n).padStart(2, '0');
  if (d > 0) return `${d}-${two(h)}:${two(m)}:${two(s)}`;
  return h > 0 || hours ? `${hours ? two(h) : h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

export function moment(seconds: number | undefined, none: string): string {
  if (seconds === undefined || seconds === 0) return none;
  const date = new Date(seconds * 1000);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** As ctime(3) writes it, in the local time. */
export function ctime(seconds: number): string {
  const at = new Date(seconds * 1000);
  const [day, month] = [at.toLocaleString('en', { weekday: 'short' }), at.toLocaleString('en', { month: 'short' })];
  const two = (n: number) => String(n).padStart(2, '0');
  return `${day} ${month} ${String(at.getDate()).padStart(2)} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())} ${at.getFullYear()}`;
}

/** When it ended, or must end. */
export function endsAt({ started, ended, limit }: SlurmJob): number | undefined {
  return ended ?? (started === undefined || limit === undefined ? undefined : started + limit * 60);
}

/** Absolute names of its standard output and error. */
export function outputPaths({ output, error, directory }: SlurmJob): { readonly out: string; readonly error: string } {
  const whole = (file: string) => (file === '' || file.startsWith('/') ? file : `${directory}/${file}`);
  return { out: whole(output), error: whole(error || output) };
}

/** `cpu=1,mem=100M,node=1,billing=1`, in the order of squeue and scontrol. */
export function tres({ cpus, gpus, memoryMb, nodes }: SlurmJob): string {
  const gpu = gpus === 0 ? '' : `,gres/gpu=${gpus}`;
  return `cpu=${cpus},mem=${memoryMb}M,node=${nodes},billing=${cpus}${gpu}`;
}

export function elapsed({ started, ended }: SlurmJob, now: number): number {
  return started === undefined ? 0 : Math.max(0, (ended ?? now) - started);
}
