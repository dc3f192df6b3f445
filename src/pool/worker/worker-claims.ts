import { ClassAd, Matchmaker } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { AttemptKey } from '../../job/ids.ts';
import { adFrom, offerAd } from '../wire/ads.ts';
import { AttemptDir } from './attempt-dir.ts';
import { type AttemptPlace, type AttemptRecord, recordOf } from './attempt-place.ts';
import type { Choice } from './job-users.ts';
import type { Containers } from './containers.ts';
import type { DiskSpace } from './disk-space.ts';
import { gpuIds, gpuVariables, namesGpus } from './gpus.ts';
import { commonOf, isLight, TaskRunner } from './task-runner.ts';
import type { Run } from './run.ts';
import { minus, shortOf } from '../wire/slots.ts';
import { Starter } from './starter.ts';
import { warningOf } from './warning.ts';
import type { WaiterScripts } from './waiter/waiter.ts';
import type { FromCentralManager, RunSpec, Size } from '../wire/wire.ts';

/** An unused task runner ends after this time, in milliseconds. */
const SPARE_MS = 10_000;

interface Claim {
  readonly size: Size;
  /** Its own, of the machine's. */
  readonly gpus: readonly string[];
  run: Run | undefined;
  /** What is to run after it; nothing of it is on disk. */
  waiting: Start[];
  /** The current run takes long: nothing may wait behind it. */
  slow: boolean;
  starter: Starter | undefined;
  taskRunner: TaskRunner | undefined;
  /** What its last job has in common with others of its kind. */
  common: string | undefined;
}

export type Start = Extract<FromCentralManager, { readonly t: 'start' }>;

/** The texts of starter.sh and task-runner.sh, and those of the waiter. */
export interface Scripts extends WaiterScripts {
  readonly starter: string;
  readonly taskRunner: string;
}

/** What may currently be used of the machine. */
export interface ClaimableMachine {
  readonly size: Size;
  /** Its `Requirements` include the START policy. */
  readonly ad: AttrTexts;
  /** Jobs whose processes use more memory than their slot has are ended. */
  readonly limitMemory: boolean;
}

export interface WorkerClaimsOptions {
  readonly machine: ClaimableMachine;
  readonly containers: Pick<Containers, 'ad'>;
  readonly env: NodeJS.ProcessEnv;
  readonly scripts: Scripts;
  /** The command that runs and waits for a program. */
  readonly waiter: readonly string[];
  readonly jobsDir: string;
  /** The same for jobs that run under other accounts. */
  readonly executeDir?: string | undefined;
  readonly taskRunnersDir: string;
  /** Whether the worker can read files of the agent's machine directly. */
  readonly sharesHome: boolean;
  readonly space: Pick<DiskSpace, 'kb'>;
  /** Set if each job has a cgroup. */
  readonly groups?: object | undefined;
}

/** The worker's partitionable slot, the claims on it, and the shells that run what is granted under them. */
export class WorkerClaims {
  readonly #options: WorkerClaimsOptions;
  #machine = new ClassAd();
  /** The ad texts that the machine's ad was built from. */
  #texts: readonly AttrTexts[] = [];
  readonly #claims = new Map<string, Claim>();
  readonly #spare: Starter[] = [];
  readonly #spareTaskRunners = new Map<TaskRunner, number>();
  /** The disk space that was free when nothing was claimed, in KB. */
  #diskKb: number;

  constructor(options: WorkerClaimsOptions) {
    this.#options = options;
    this.#diskKb = options.machine.size.diskKb;
  }

  /** What is not claimed; negative if the worker's size was reduced below what is claimed. */
  get #free(): Size {
    const all = { ...this.#options.machine.size, diskKb: this.#diskKb };
    return [...this.#claims.values()].reduce((left, { size }) => minus(left, size), all);
  }

  /**
   * Returns why a job is not accepted, if so: the central manager's match is only a hint, and the worker checks it
   * again. If the job is accepted and its claim does not exist yet, the claim is created.
   */
  admit(start: { readonly claim: string; readonly size: Size }, job: ClassAd | undefined): string | undefined {
    const held = this.#claims.get(start.claim);
    if (!job) return 'its claim is unknown';
    if (held) {
      const short = shortOf(start.size, held.size);
      return short === undefined ? undefined : `the claim is smaller: ${short}`;
    }
    const { kb } = this.#options.space;
    if (this.#claims.size === 0) this.#diskKb = kb;
    const left = this.#free;
    const free = { ...left, diskKb: Math.min(left.diskKb, kb) };
    const short = shortOf(start.size, free);
    if (short !== undefined) return `it requests ${short}`;
    const matchmaker = new Matchmaker();
    const machine = offerAd(this.#machineNow(), free);
    if (!matchmaker.accepts(machine, job)) return "the machine's START policy rejects it";
    if (!matchmaker.accepts(job, machine)) return "the job's requirements reject this machine";
    this.#claims.set(start.claim, fresh(start.size, undefined, this.#freeGpus(start.size.gpus)));
    return undefined;
  }

  /** What is recorded of a start under its claim. `kind`: what the job's ad shares with others. */
  record(start: Start, spec: RunSpec, account: Choice, kind: AttrTexts | undefined): AttemptRecord {
    const { machine, sharesHome } = this.#options;
    const gpus = machine.size.gpus > 0 ? (this.#claims.get(start.claim)?.gpus ?? []) : undefined;
    const order = { ...start, gpus, warning: warningOf(start.ad, kind) };
    return recordOf(order, spec, account, sharesHome, 'base' in start.spec);
  }

  #freeGpus(count: number): readonly string[] {
    const taken = new Set([...this.#claims.values()].flatMap(({ gpus }) => gpus));
    const all = gpuIds(this.#options.machine.size.gpus, this.#options.env);
    return all.filter((id) => !taken.has(id)).slice(0, Math.ceil(count));
  }

  /** The machine's ad, including what has been found since the worker started. */
  #machineNow(): ClassAd {
    const texts = [this.#options.machine.ad, this.#options.containers.ad()];
    if (texts.some((one, i) => one !== this.#texts[i])) this.#machine = adFrom(Object.assign({}, ...texts));
    this.#texts = texts;
    return this.#machine;
  }

  occupy(run: Run): void {
    const claim = this.#claims.get(run.record.claim);
    if (!claim) return;
    claim.run = run;
    claim.slow = false;
  }

  /**
   * If something is already running under the claim: the start waits for it to end ('waits'), or must not wait because
   * it takes long ('slow').
   */
  behind(start: Start): 'waits' | 'slow' | undefined {
    const claim = this.#claims.get(start.claim);
    if (!claim || !isBusy(claim)) return undefined;
    if (claim.slow) return 'slow';
    if (!claim.waiting.some(({ key }) => key === start.key)) claim.waiting.push(start);
    return 'waits';
  }

  /** The next waiting start, if nothing is running under the claim. */
  next(id: string): Start | undefined {
    const claim = this.#claims.get(id);
    return claim && !isBusy(claim) ? claim.waiting.shift() : undefined;
  }

  /** Marks a claim's run as slow; returns and removes what was waiting behind it. */
  slow(id: string): readonly Start[] {
    const claim = this.#claims.get(id);
    if (!claim) return [];
    claim.slow = true;
    return claim.waiting.splice(0);
  }

  /** Returns and removes what is waiting under all claims. */
  dropWaiting(): readonly Start[] {
    return [...this.#claims.values()].flatMap((claim) => claim.waiting.splice(0));
  }

  unwait(key: AttemptKey): void {
    for (const claim of this.#claims.values()) claim.waiting = claim.waiting.filter((start) => start.key !== key);
  }

  /** Restores the claim of a run that an earlier worker left; one that has ended uses nothing, even until it is forgotten. */
  adopt(run: Run): void {
    if (!run.dir.exit()) this.#claims.set(run.record.claim, fresh(run.record.size, run, run.record.gpus));
  }

  starter(id: string): Starter {
    const claim = this.#claims.get(id);
    const kept = claim?.starter?.alive ? claim.starter : this.#spare.pop();
    const { scripts, jobsDir, env } = this.#options;
    const starter = kept?.alive ? kept : new Starter(scripts.starter, jobsDir, env);
    if (claim) claim.starter = starter;
    return starter;
  }

  /**
   * Records an attempt on disk, so that no other worker in this directory starts it again. Throws if the disk is full.
   */
  place(record: AttemptRecord, base: string | undefined, slot: string | undefined): AttemptPlace {
    // The tasks of a map with files have directories of their own.
    if (!record.user && isLight(record.spec) && !isApart(record) && (base === undefined || record.spec.shared)) {
      const common = base ?? this.#seenBefore(record.claim, commonOf(record.spec));
      if (common !== undefined)
        return this.#taskRunner(record.claim, common, record.spec, base === undefined).give(record, slot);
    }
    const { jobsDir, executeDir = jobsDir } = this.#options;
    const dir = new AttemptDir(record.user ? executeDir : jobsDir, record.key);
    try {
      dir.create(record);
      return dir;
    } catch (thrown) {
      dir.remove();
      throw thrown;
    }
  }

  /** A task runner for jobs of one kind pays off from the second job on. */
  #seenBefore(id: string, common: string): string | undefined {
    const claim = this.#claims.get(id);
    if (!claim) return undefined;
    const before = claim.common;
    claim.common = common;
    // With cgroups, a long job should be in its cgroup from the start.
    return before === common && !(claim.slow && this.#options.groups) ? common : undefined;
  }

  /** The task runner for a map's tasks, or for jobs of one kind, under a claim. */
  #taskRunner(id: string, base: string, spec: RunSpec, own: boolean): TaskRunner {
    const claim = this.#claims.get(id);
    const kept = claim?.taskRunner;
    if (kept?.alive && kept.base === base && !kept.tired) return kept;
    kept?.end();
    const spare = [...this.#spareTaskRunners.keys()].find(
      (taskRunner) => taskRunner.alive && taskRunner.base === base && !taskRunner.tired,
    );
    if (spare) this.#spareTaskRunners.delete(spare);
    const { scripts, waiter, taskRunnersDir, machine } = this.#options;
    const env = { ...this.#options.env, ...gpuVariables(machine.size.gpus > 0 ? [] : undefined) };
    const taskRunner =
      spare ?? new TaskRunner({ script: scripts.taskRunner, waiter, taskRunnersDir, env, base, spec, own });
    if (claim) claim.taskRunner = taskRunner;
    return taskRunner;
  }

  /** Ends task runners that have been unused for a while. */
  endSpareTaskRunners(): void {
    for (const [taskRunner, since] of this.#spareTaskRunners) {
      if (performance.now() - since < SPARE_MS) continue;
      this.#spareTaskRunners.delete(taskRunner);
      taskRunner.end();
    }
  }

  /** What ran under its claim has ended: the claim is free for the next attempt. */
  leave(run: Run): void {
    if (run.dir instanceof AttemptDir) run.dir.seal();
    const claim = this.#claims.get(run.record.claim);
    if (claim?.run === run) claim.run = undefined;
  }

  /**
   * Releases a claim as the central manager asked. If something is running or waiting under it, it stays until it is
   * released again.
   */
  release(id: string): void {
    const claim = this.#claims.get(id);
    if (!claim || claim.run || claim.waiting.length > 0) return;
    this.#claims.delete(id);
    if (claim.starter?.alive) this.#spare.push(claim.starter);
    if (claim.taskRunner) this.#spareTaskRunners.set(claim.taskRunner, performance.now());
  }

  releaseIdle(): void {
    for (const id of this.#claims.keys()) this.release(id);
  }

  close(): void {
    for (const starter of this.#spare) starter.end();
    for (const taskRunner of this.#spareTaskRunners.keys()) taskRunner.end();
    for (const { starter, taskRunner } of this.#claims.values()) {
      starter?.end();
      taskRunner?.end();
    }
  }
}

function fresh(size: Size, run: Run | undefined, gpus: readonly string[] = []): Claim {
  return { size, gpus, run, waiting: [], slow: false, starter: undefined, taskRunner: undefined, common: undefined };
}

/** It sees GPUs of its own, or would see others': a shell that runs many jobs lets them see none, and records no warning. */
function isApart({ gpus, warning, spec }: AttemptRecord): boolean {
  return warning !== undefined || (gpus !== undefined && (gpus.length > 0 || namesGpus(spec.env)));
}

function isBusy({ run }: Claim): boolean {
  return run !== undefined && run.phase !== 'ended';
}
