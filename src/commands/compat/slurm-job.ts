import type { AdText, JobView } from '../../index.ts';
import { inAd, readBoolean, readNumber, readString } from '../../job/values.ts';

/** As in src/batch-script/array.ts: an array's job has the number cluster × 10⁷ + index. */
export const JOB_NUMBERS = 10_000_000;

const STATES = {
  PENDING: 'PD',
  RUNNING: 'R',
  SUSPENDED: 'S',
  COMPLETING: 'CG',
  COMPLETED: 'CD',
  CANCELLED: 'CA',
  FAILED: 'F',
  TIMEOUT: 'TO',
  NODE_FAIL: 'NF',
  OUT_OF_MEMORY: 'OOM',
} as const;
export type SlurmState = keyof typeof STATES;

/** States of a job that has not ended. */
export const LIVE: ReadonlySet<SlurmState> = new Set(['PENDING', 'RUNNING', 'SUSPENDED', 'COMPLETING']);

/** What it reads. */
export const ATTRIBUTES =
  'JobStatus HoldReasonCode HoldReason GryphusDependency GryphusArrayTask GryphusArray JobBatchName Cmd Owner BatchQueue GryphusSite BatchProject GryphusAccount RequestCpus RequestGPUs MachineCount RequestMemory BatchRuntime QDate JobCurrentStartDate JobStartDate CompletionDate EnteredCurrentStatus RemoteHost LastRemoteHost ExitCode ExitBySignal ExitSignal Iwd Out Err JobDescription JobPrio NumJobStarts RemoteUserCpu RemoteSysCpu ResidentSetSize'.split(
    ' ',
  );

/** A job in Slurm's terms, each of which is read when it is asked for. Times are Unix seconds. */
export class SlurmJob {
  readonly cluster: number;
  readonly proc: number;
  readonly task: number | undefined;
  /** `12`, `12_3`. */
  readonly id: string;
  readonly state: SlurmState;
  readonly #ad: AdText;

  constructor({ cluster, proc }: JobView['id'], ad: AdText, id?: string) {
    this.#ad = ad;
    this.cluster = cluster;
    this.proc = proc;
    this.task = this.#number('GryphusArrayTask') ?? (proc > 0 ? proc : undefined);
    this.id = id ?? (this.task === undefined ? `${cluster}` : `${cluster}_${this.task}`);
    this.state = stateOf(ad);
  }

  /** The same job under another id. */
  as(id: string): SlurmJob {
    return new SlurmJob(this, this.#ad, id);
  }

  get raw(): number {
    return this.task === undefined ? this.cluster : this.cluster * JOB_NUMBERS + this.task;
  }

  get code(): string {
    return STATES[this.state];
  }

  get reason(): string {
    return this.state === 'PENDING' ? reasonOf(this.#ad) : 'None';
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

  get started(): number | undefined {
    if (this.state === 'PENDING') return undefined;
    return this.#number('JobCurrentStartDate') ?? this.#number('JobStartDate');
  }

  get ended(): number | undefined {
    return this.#live ? undefined : this.#number('CompletionDate') || this.#number('EnteredCurrentStatus');
  }

  get node(): string {
    if (this.state === 'PENDING') return '';
    return (this.#text('RemoteHost') ?? this.#text('LastRemoteHost') ?? '').split('@').at(-1) ?? '';
  }

  get exit(): string {
    const signal = readBoolean(inAd(this.#ad), 'ExitBySignal') === true ? (this.#number('ExitSignal') ?? 0) : 0;
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

  get #live(): boolean {
    return LIVE.has(this.state);
  }

  #text(name: string): string | undefined {
    return readString(inAd(this.#ad), name);
  }

  #number(name: string): number | undefined {
    return readNumber(inAd(this.#ad), name);
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

function reasonOf(ad: AdText): string {
  const get = inAd(ad);
  if (readNumber(get, 'JobStatus') !== 5) return 'Priority';
  if (!get.get('GryphusDependency') || readNumber(get, 'HoldReasonCode') !== 15) return 'JobHeldUser';
  return (readString(get, 'HoldReason') ?? '').startsWith('DependencyNever')
    ? 'DependencyNeverSatisfied'
    : 'Dependency';
}
