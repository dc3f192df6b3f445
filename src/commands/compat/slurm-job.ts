import type { AdText, JobView } from '../../index.ts';
import { inAd, readBoolean, readNumber, readString } from '../../job/values.ts';

/** As in src/batch-script/array.ts: an array's job has the number cluster × 10⁷ + index. */
export const JOB_NUMBERS = 10_000_000;

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
  | 'OUT_OF_MEMORY'
  | 'DEADLINE';

/** A state's name, by that or by its code, in upper or lower case; `undefined` if Slurm knows no such state. */
export function stateNamed(text: string): string | undefined {
  const word = text.toUpperCase();
  return STATE_NAMES.find((name) => name === word || STATES.get(name) === word);
}

/** States of a job that has not ended. */
export const LIVE: ReadonlySet<SlurmState> = new Set(['PENDING', 'RUNNING', 'SUSPENDED', 'COMPLETING']);

/** What it reads. */
export const ATTRIBUTES =
  'JobStatus LastJobStatus HoldReasonCode HoldReason RemoveReason GryphusBegin GryphusDependency GryphusArrayTask GryphusArray JobBatchName Cmd Owner BatchQueue GryphusSite BatchProject GryphusAccount RequestCpus RequestGPUs MachineCount RequestMemory BatchRuntime QDate JobCurrentStartDate JobStartDate CompletionDate EnteredCurrentStatus RemoteHost LastRemoteHost ExitCode ExitBySignal ExitSignal Iwd Out Err JobDescription JobPrio NumJobStarts RemoteUserCpu RemoteSysCpu ResidentSetSize'.split(
    ' ',
  );

/** What it reads of a job for the columns of an ordinary listing (`isListed`); a queue of thousands is read faster so. */
export const LISTED_ATTRIBUTES =
  'JobStatus LastJobStatus HoldReasonCode HoldReason RemoveReason GryphusBegin GryphusDependency GryphusArrayTask GryphusArray JobBatchName Cmd Owner BatchQueue GryphusSite MachineCount JobCurrentStartDate JobStartDate CompletionDate EnteredCurrentStatus RemoteHost LastRemoteHost ExitCode ExitBySignal'.split(
    ' ',
  );

/** From a time to another, in Unix seconds. */
interface Window {
  readonly from: number;
  readonly to: number;
}

/** A job in Slurm's terms, each of which is read when it is asked for. Times are Unix seconds. */
export class SlurmJob {
  readonly cluster: number;
  readonly proc: number;
  readonly task: number | undefined;
  /** `12`, `12_3`. */
  readonly id: string;
  readonly state: SlurmState;
  /** Jobs that differ in nothing that was asked for have the same one. */
  readonly ad: AdText;
  readonly #index: number | undefined;
  readonly #window: Window | undefined;

  /** `like`: another job with the same ad. */
  constructor({ cluster, proc }: JobView['id'], ad: AdText, id?: string, window?: Window, like?: SlurmJob) {
    this.ad = ad;
    this.#window = window;
    this.cluster = cluster;
    this.proc = proc;
    this.#index = like ? like.#index : this.#number('GryphusArrayTask');
    this.task = this.#index ?? (proc > 0 ? proc : undefined);
    this.id = id ?? (this.task === undefined ? `${cluster}` : `${cluster}_${this.task}`);
    this.state = like ? like.state : stateOf(ad);
  }

  /** The same job under another id. */
  as(id: string): SlurmJob {
    return new SlurmJob(this, this.ad, id, this.#window);
  }

  /** As if the job had been there in this time only. */
  within(window: Window): SlurmJob {
    return new SlurmJob(this, this.ad, this.id, window);
  }

  /** Whether the queue has made it: a task beyond its array's limit (`%4`) has no status yet. */
  get made(): boolean {
    return this.ad['JobStatus'] !== undefined;
  }

  get raw(): number {
    return this.task === undefined ? this.cluster : this.cluster * JOB_NUMBERS + this.task;
  }

  get code(): string {
    return STATES.get(this.state) ?? '';
  }

  get reason(): string {
    return this.state === 'PENDING' || this.#neverFree ? reasonOf(this.ad) : 'None';
  }

  get name(): string {
    return this.#text('JobBatchName') ?? this.command.slice(this.command.lastIndexOf('/') + 1);
  }

  get user(): string {
    return this.#text('Owner') ?? '';
  }

  get partition(): string {
    return this.#text('BatchQueue') ?? this.#text('GryphusSite') ?? '';
  }

  get account(): string {
    return this.#text('BatchProject') ?? this.#text('GryphusAccount') ?? '';
  }

  get cpus(): number {
    return this.#number('RequestCpus') ?? 1;
  }

  get gpus(): number {
    return this.#number('RequestGPUs') ?? 0;
  }

  get nodes(): number {
    return this.#number('MachineCount') ?? 1;
  }

  get memoryMb(): number {
    return this.#number('RequestMemory') ?? 0;
  }

  /** Minutes. */
  get limit(): number | undefined {
    const seconds = this.#number('BatchRuntime');
    return seconds === undefined ? undefined : Math.ceil(seconds / 60);
  }

  get submitted(): number {
    return this.#number('QDate') ?? 0;
  }

  /** When it could first have started; a job that is held, or was until its end, never could. */
  get eligible(): number | undefined {
    return this.begin ?? (this.#neverFree ? undefined : this.submitted);
  }

  /** Before which it may not start. */
  get begin(): number | undefined {
    return this.#number('GryphusBegin');
  }

  get started(): number | undefined {
    const begun = this.state === 'PENDING' ? undefined : this.#begun;
    return begun === undefined || !this.#window ? begun : Math.max(begun, this.#window.from);
  }

  get ended(): number | undefined {
    if (this.#live) return undefined;
    const at = this.#number('CompletionDate') || this.#number('EnteredCurrentStatus');
    return at === undefined || !this.#window ? at : Math.min(at, this.#window.to);
  }

  get node(): string {
    if (this.state === 'PENDING') return '';
    return (this.#text('RemoteHost') ?? this.#text('LastRemoteHost') ?? '').split('@').at(-1) ?? '';
  }

  get exit(): string {
    const signal = readBoolean(inAd(this.ad), 'ExitBySignal') === true ? (this.#number('ExitSignal') ?? 0) : 0;
    return signal > 0 ? `0:${signal}` : `${this.#live ? 0 : (this.#number('ExitCode') ?? 0)}:0`;
  }

  get directory(): string {
    return this.#text('Iwd') ?? '';
  }

  get command(): string {
    return this.#text('Cmd') ?? '';
  }

  get output(): string {
    return this.#text('Out') ?? '';
  }

  get error(): string {
    return this.#text('Err') ?? '';
  }

  get comment(): string {
    return this.#text('JobDescription') ?? '';
  }

  get dependency(): string {
    return this.#text('GryphusDependency') ?? '';
  }

  get priority(): number {
    return this.#number('JobPrio') ?? 0;
  }

  /** For an array: its indices, and the most at once. */
  get array(): string {
    return this.#text('GryphusArray') ?? '';
  }

  get starts(): number {
    return this.#number('NumJobStarts') ?? 0;
  }

  /** Held in the queue, even if its state is an end. */
  get held(): boolean {
    return this.#number('JobStatus') === 5;
  }

  /** Seconds of the processor. */
  get userCpu(): number {
    return this.#number('RemoteUserCpu') ?? 0;
  }

  get systemCpu(): number {
    return this.#number('RemoteSysCpu') ?? 0;
  }

  /** The most memory that it used. */
  get residentKb(): number {
    return this.#number('ResidentSetSize') ?? 0;
  }

  get #begun(): number | undefined {
    return this.#number('JobCurrentStartDate') ?? this.#number('JobStartDate');
  }

  get #neverFree(): boolean {
    return this.#begun === undefined && waitsOrWaited(this.ad);
  }

  get #live(): boolean {
    return LIVE.has(this.state);
  }

  #text(name: string): string | undefined {
    return readString(inAd(this.ad), name);
  }

  #number(name: string): number | undefined {
    return readNumber(inAd(this.ad), name);
  }
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
      return readString(get, 'RemoveReason') === 'DeadLine' ? 'DEADLINE' : 'CANCELLED';
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
function waitsOrWaited(ad: AdText): boolean {
  const get = inAd(ad);
  const status = readNumber(get, 'JobStatus');
  const held = status === 5 || (status === 3 && readNumber(get, 'LastJobStatus') === 5);
  return held && WAITS.has(readNumber(get, 'HoldReasonCode') ?? 0);
}

function reasonOf(ad: AdText): string {
  const get = inAd(ad);
  if (get.get('JobStatus') === undefined) return 'JobArrayTaskLimit';
  if (!waitsOrWaited(ad)) return 'Priority';
  const atSubmit = readNumber(get, 'HoldReasonCode') === 15;
  if (atSubmit && !get.get('GryphusDependency') && get.get('GryphusBegin')) return 'BeginTime';
  if (!get.get('GryphusDependency') || !atSubmit) return 'JobHeldUser';
  return (readString(get, 'HoldReason') ?? '').startsWith('DependencyNever')
    ? 'DependencyNeverSatisfied'
    : 'Dependency';
}
