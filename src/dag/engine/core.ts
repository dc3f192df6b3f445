import { type DagGraph, FLAG, KIND, nameOf } from '../language/graph.ts';
import type { ScriptType } from '../language/commands.ts';
import type { DagSettings } from '../language/settings.ts';
import type { DagCommand, Limits } from './messages.ts';
import { ReadyQueue } from './ready-queue.ts';
import { DAG_STATUS, type DagStatus, NO_RETURN, STATUS, type Status } from './status.ts';

/** Bits of `Core.marks`. */
export const MARK = { preScriptDone: 1, countedDone: 2, unsuccessful: 4, hold: 8, runs: 16 } as const;

/** Bits of a job's state within its node. */
export const PROC = { idle: 1, held: 2, executed: 4, ended: 8 } as const;

/** The jobs of a node's current or latest submit. */
export interface JobSet {
  readonly cluster: number;
  readonly procs: number;
  /** How many have not ended yet. */
  queued: number;
  held: number;
  failed: number;
  /** The PROC bits of each job. */
  readonly state: Uint8Array;
  /** The exit code of each job that has ended; `undefined` if it was removed. */
  readonly exit: (number | undefined)[];
}

/** The scripts of one type: how many are running and which nodes are waiting. */
export interface ScriptQueue {
  running: number;
  /** Nodes waiting for a slot, first come first served; entries before `head` have been taken. */
  waiting: number[];
  head: number;
  /** Nodes waiting until their DEFER time. */
  readonly deferred: { readonly node: number; readonly at: number }[];
}

export interface Counts {
  done: number;
  failed: number;
  futile: number;
  submitted: number;
  services: number;
  readyServices: number;
  pre: number;
  post: number;
  idle: number;
  held: number;
  parked: number;
  jobsSubmitted: number;
  jobsCompleted: number;
  /** Counts of [plain, sub-DAG, service] nodes that have ended. */
  readonly ended: { failed: [number, number, number]; succeeded: [number, number, number] };
}

/** The state of a running DAG, built up from all events so far. */
export interface Core {
  readonly dag: DagGraph;
  readonly settings: DagSettings;
  limits: Limits;
  readonly dagmanId: number;
  readonly out: DagCommand[];
  /** The time of the current event, in Unix milliseconds. */
  now: number;
  readonly status: Uint8Array;
  /** How many parents of each node have not ended. */
  readonly waiting: Int32Array;
  readonly retries: Int32Array;
  readonly retryMax: Int32Array;
  readonly returned: Int32Array;
  readonly marks: Uint8Array;
  /** The node's number in the jobstate log; 0 until this attempt has been given one. */
  readonly sequence: Int32Array;
  nextSequence: number;
  readonly submitTries: Map<number, number>;
  readonly errors: Map<number, string>;
  readonly jobs: Map<number, JobSet>;
  readonly byCluster: Map<number, number>;
  /** What POST is told: the return values of the job and of the PRE script. */
  readonly postReturn: Map<number, number>;
  readonly preReturn: Map<number, number>;
  readonly ready: ReadyQueue;
  /** Nodes whose submit failed, with the time at which to try again. */
  readonly resting: { readonly node: number; readonly at: number }[];
  /** Ready nodes whose category is full, and the number of queued nodes in each category. */
  readonly parked: Map<number, ReadyQueue>;
  readonly categoryRunning: Int32Array;
  readonly scripts: Readonly<Record<ScriptType, ScriptQueue>>;
  readonly counts: Counts;
  readonly deferrals: { maxJobs: number; maxIdle: number; category: number; PRE: number; POST: number; HOLD: number };
  dagStatus: DagStatus;
  /** The status to return to when the halt is over. */
  statusWithoutHalt: DagStatus;
  halted: boolean;
  aborted: boolean;
  finalStarted: boolean;
  provisioned: boolean;
  rescueWritten: boolean;
  noopSerial: number;
  exitCode: number | undefined;
}

export interface CoreOptions {
  readonly settings: DagSettings;
  readonly limits: Limits;
  /** The cluster of the DAG manager's own job. */
  readonly dagmanId: number;
  /** The first number in the jobstate log; 1 except in a rescue run. */
  readonly firstSequence?: number;
}

export function newCore(dag: DagGraph, options: CoreOptions): Core {
  const n = dag.size;
  const waiting = new Int32Array(n);
  for (let node = 0; node < n; node++) {
    waiting[node] = (dag.edges.parentStart[node + 1] ?? 0) - (dag.edges.parentStart[node] ?? 0);
  }
  const status = new Uint8Array(n).fill(STATUS.ready);
  if (dag.final !== undefined) status[dag.final] = STATUS.notReady;
  for (let node = 0; node < n; node++) {
    if (((dag.flags[node] ?? 0) & (FLAG.done | FLAG.finished)) !== 0 && dag.kind[node] === KIND.job) {
      status[node] = STATUS.done;
    }
  }
  const scripts = (): ScriptQueue => ({ running: 0, waiting: [], head: 0, deferred: [] });
  return {
    dag,
    settings: options.settings,
    limits: options.limits,
    dagmanId: options.dagmanId,
    out: [],
    now: 0,
    status,
    waiting,
    retries: new Int32Array(n),
    retryMax: dag.retryMax.slice(),
    returned: new Int32Array(n).fill(NO_RETURN.none),
    marks: new Uint8Array(n),
    sequence: new Int32Array(n),
    nextSequence: options.firstSequence ?? 1,
    submitTries: new Map(),
    errors: new Map(),
    jobs: new Map(),
    byCluster: new Map(),
    postReturn: new Map(),
    preReturn: new Map(),
    ready: new ReadyQueue(dag.priority),
    resting: [],
    parked: new Map(),
    categoryRunning: new Int32Array(dag.categories.length),
    scripts: { PRE: scripts(), POST: scripts(), HOLD: scripts() },
    counts: {
      done: 0,
      failed: 0,
      futile: 0,
      submitted: 0,
      services: 0,
      readyServices: dag.services.length,
      pre: 0,
      post: 0,
      idle: 0,
      held: 0,
      parked: 0,
      jobsSubmitted: 0,
      jobsCompleted: 0,
      ended: { failed: [0, 0, 0], succeeded: [0, 0, 0] },
    },
    deferrals: { maxJobs: 0, maxIdle: 0, category: 0, PRE: 0, POST: 0, HOLD: 0 },
    dagStatus: DAG_STATUS.ok,
    statusWithoutHalt: DAG_STATUS.ok,
    halted: false,
    aborted: false,
    finalStarted: false,
    provisioned: dag.provisioner === undefined,
    rescueWritten: false,
    noopSerial: 0,
    exitCode: undefined,
  };
}

/** The jobs of a node's cluster that are not known to have ended. */
export function procsInQueue(core: Core, node: number, cluster: number): readonly number[] {
  const jobs = core.jobs.get(node);
  if (jobs === undefined || jobs.cluster !== cluster) return [];
  return Array.from({ length: jobs.procs }, (_, proc) => proc).filter(
    (proc) => ((jobs.state[proc] ?? 0) & PROC.ended) === 0,
  );
}

export function say(core: Core, text: string): void {
  core.out.push({ do: 'say', text });
}

export function statusOf(core: Core, node: number): Status {
  return (core.status[node] ?? STATUS.ready) as Status;
}

export function setStatus(core: Core, node: number, status: Status): void {
  if (core.dag.kind[node] === KIND.service) {
    const was = core.status[node] === STATUS.ready ? 1 : 0;
    core.counts.readyServices += (status === STATUS.ready ? 1 : 0) - was;
  }
  core.status[node] = status;
}

export function marked(core: Core, node: number, mark: number): boolean {
  return ((core.marks[node] ?? 0) & mark) !== 0;
}

export function setMark(core: Core, node: number, mark: number, on: boolean): void {
  const old = core.marks[node] ?? 0;
  core.marks[node] = on ? old | mark : old & ~mark;
}

export function isService(core: Core, node: number): boolean {
  return core.dag.kind[node] === KIND.service;
}

export function isPreDone(core: Core, node: number): boolean {
  return ((core.dag.flags[node] ?? 0) & FLAG.done) !== 0;
}

export function canSubmit(core: Core, node: number): boolean {
  return core.status[node] === STATUS.ready && (core.waiting[node] ?? 0) === 0;
}

/** Sets the DAG's status after a failure; only the first failure counts. */
export function noteStatus(core: Core, status: DagStatus): void {
  if (core.halted) {
    if (core.statusWithoutHalt === DAG_STATUS.ok) core.statusWithoutHalt = status;
  } else if (core.dagStatus === DAG_STATUS.ok) core.dagStatus = status;
}

export function forceStatus(core: Core, status: DagStatus): void {
  core.dagStatus = status;
  core.halted = status === DAG_STATUS.halted;
}

/** Writes a line to the jobstate log, if the DAG has one. */
export function jobstate(core: Core, node: number, word: string, id: string): void {
  if (core.dag.jobstateLog === undefined) return;
  if ((core.sequence[node] ?? 0) === 0) core.sequence[node] = core.nextSequence++;
  core.out.push({ do: 'jobstate', node, word, id, sequence: core.sequence[node] ?? 0 });
}

/** Counts a node that ended: 0 plain, 1 sub-DAG, 2 service. */
export function countEnd(core: Core, node: number, success: boolean): void {
  const type = isService(core, node) ? 2 : ((core.dag.flags[node] ?? 0) & FLAG.subdag) !== 0 ? 1 : 0;
  core.counts.ended[success ? 'succeeded' : 'failed'][type]++;
}

export function nodeName(core: Core, node: number): string {
  return nameOf(core.dag, node);
}

export function nodeCount(core: Core, withFinal: boolean): number {
  return core.dag.order.length - (!withFinal && core.dag.final !== undefined ? 1 : 0);
}

export function doneCount(core: Core, withFinal: boolean): number {
  const { final } = core.dag;
  return core.counts.done - (!withFinal && final !== undefined && core.status[final] === STATUS.done ? 1 : 0);
}

/** How many nodes are ready and only need a slot in the queue. */
export function readyCount(core: Core): number {
  return core.ready.size + core.resting.length + core.counts.parked - readyServicesQueued(core);
}

function readyServicesQueued(core: Core): number {
  return core.dag.services.length === 0 ? 0 : core.counts.readyServices;
}

export function unreadyCount(core: Core): number {
  const { counts } = core;
  return (
    nodeCount(core, true) -
    (counts.done + counts.pre + counts.submitted + counts.post + readyCount(core) + counts.failed + counts.futile)
  );
}
