import { orStartDirectory } from '../job/start-directory.ts';
import type { Destination, Submitter } from './description.ts';
import type { ArrayIndices, System, Wishes } from './model.ts';
import { allIndices } from './values.ts';

/** A variable's value: a text that means itself, or one with the description's macros. */
export type Value = { readonly text: string } | { readonly macro: string };

export interface VariableFacts {
  readonly wishes: Wishes;
  readonly by: Submitter;
  readonly to: Destination;
  readonly name: string;
  /** Cores and nodes, as the description asks for them. */
  readonly cpus: number;
  readonly nodes: number;
  /** The job's own id and its index, as macros. */
  readonly job: string;
  readonly index: string;
}

/** A row of the table of variables: `native`: also set at a site of the same system, whose own value would mislead. */
export interface Variable {
  readonly name: string;
  readonly native?: true;
  readonly value: (facts: VariableFacts) => Value | undefined;
}

const text = (value: string | number | undefined): Value | undefined =>
  value === undefined ? undefined : { text: String(value) };
const macro = (value: string): Value => ({ macro: value });
/** Only a job of an array has it. */
const ofArray = (get: (array: ArrayIndices, facts: VariableFacts) => Value) => (facts: VariableFacts) =>
  facts.wishes.array === undefined ? undefined : get(facts.wishes.array, facts);
const row = (names: string, value: Variable['value'], native?: true): Variable[] =>
  names.split(' ').map((name) => ({ name, value, ...(native && { native }) }));

const submitDirectory = ({ by }: VariableFacts) => text(orStartDirectory(by.cwd));
const queue = ({ wishes, to }: VariableFacts) => text(wishes.queue ?? to.name);
const least = (array: ArrayIndices) => Math.min(...array.ranges.map(({ from }) => from));
const last = (array: ArrayIndices) =>
  Math.max(...array.ranges.map((one) => one.from + Math.floor((one.to - one.from) / one.step) * one.step));
const step = (array: ArrayIndices) => (array.ranges.length === 1 ? (array.ranges[0]?.step ?? 1) : 1);
const howMany = (array: ArrayIndices) => allIndices(array).length;
/** `2(x4)`: as many at each of 4 nodes. */
const each = (count: number, { nodes }: VariableFacts) => text(nodes > 1 ? `${count}(x${nodes})` : count);
/** Names that `gryphus-rsh` understands. */
const nodeList = ({ to, nodes }: VariableFacts) =>
  to.kind === 'pool' && nodes > 1 ? text(`node[0-${nodes - 1}]`) : undefined;
const memoryMb = ({ wishes }: VariableFacts, per: 'node' | 'cpu') =>
  wishes.memory?.per === per ? text(Math.ceil(wishes.memory.bytes / 2 ** 20)) : undefined;
const tasks = ({ wishes, nodes }: VariableFacts) =>
  wishes.tasks ?? (wishes.tasksPerNode === undefined ? undefined : wishes.tasksPerNode * nodes);

/** What a script finds in its environment, as the real system sets it (each system's manual, "environment variables"). */
export const VARIABLES: Readonly<Record<System, readonly Variable[]>> = {
  slurm: [
    ...row('SLURM_JOB_ID SLURM_JOBID', ({ job }) => macro(job)),
    ...row('SLURM_JOB_NAME', ({ name }) => text(name)),
    ...row('SLURM_SUBMIT_DIR', submitDirectory, true),
    ...row('SLURM_SUBMIT_HOST', ({ by }) => text(by.host)),
    ...row('SLURM_JOB_USER', ({ by }) => text(by.user)),
    ...row('SLURM_JOB_UID', ({ by }) => text(by.uid)),
    ...row('SLURM_JOB_PARTITION', queue),
    ...row('SLURM_JOB_DEPENDENCY', ({ wishes }) => text(wishes.dependency)),
    ...row('SLURM_JOB_ACCOUNT', ({ wishes }) => text(wishes.project)),
    ...row('SLURM_CLUSTER_NAME', ({ to }) => text(to.name)),
    ...row('SLURM_NTASKS SLURM_NPROCS', (facts) => text(tasks(facts))),
    ...row('SLURM_NTASKS_PER_NODE', ({ wishes }) => text(wishes.tasksPerNode)),
    ...row('SLURM_TASKS_PER_NODE', (facts) => each((tasks(facts) ?? facts.nodes) / facts.nodes, facts)),
    ...row('SLURM_CPUS_PER_TASK', ({ wishes }) => text(wishes.cpusPerTask)),
    ...row('SLURM_CPUS_ON_NODE', ({ cpus }) => text(cpus)),
    ...row('SLURM_JOB_CPUS_PER_NODE', (facts) => each(facts.cpus, facts)),
    ...row('SLURM_JOB_NUM_NODES SLURM_NNODES', ({ nodes }) => text(nodes)),
    ...row('SLURM_JOB_NODELIST SLURM_NODELIST', nodeList),
    ...row('SLURM_MEM_PER_NODE', (facts) => memoryMb(facts, 'node')),
    ...row('SLURM_MEM_PER_CPU', (facts) => memoryMb(facts, 'cpu')),
    ...row('SLURM_GPUS', ({ wishes }) => text(wishes.gpusPer === 'job' ? wishes.gpus : undefined)),
    ...row('SLURM_GPUS_ON_NODE', ({ wishes }) => text(wishes.gpus)),
    ...row('SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_GTIDS', () => text(0)),
    ...row(
      'SLURM_ARRAY_JOB_ID',
      ofArray(() => macro('$(Cluster)')),
      true,
    ),
    ...row(
      'SLURM_ARRAY_TASK_ID',
      ofArray((_, { index }) => macro(index)),
      true,
    ),
    ...row(
      'SLURM_ARRAY_TASK_COUNT',
      ofArray((array) => macro(String(howMany(array)))),
      true,
    ),
    ...row(
      'SLURM_ARRAY_TASK_MIN',
      ofArray((array) => macro(String(least(array)))),
      true,
    ),
    ...row(
      'SLURM_ARRAY_TASK_MAX',
      ofArray((array) => macro(String(last(array)))),
      true,
    ),
    ...row(
      'SLURM_ARRAY_TASK_STEP',
      ofArray((array) => macro(String(step(array)))),
      true,
    ),
    ...row('ENVIRONMENT', () => text('BATCH')),
  ],
  pbs: [
    ...row('PBS_JOBID', ({ job }) => macro(job)),
    ...row('PBS_JOBNAME', ({ name }) => text(name)),
    ...row('PBS_ENVIRONMENT', () => text('PBS_BATCH')),
    ...row('PBS_O_WORKDIR', submitDirectory, true),
    ...row('PBS_O_HOME', ({ by }) => text(by.home)),
    ...row('PBS_O_HOST PBS_SERVER', ({ by }) => text(by.host)),
    ...row('PBS_O_LOGNAME', ({ by }) => text(by.user)),
    ...row('PBS_O_PATH', ({ by }) => text(by.path)),
    ...row('PBS_O_SHELL', ({ by }) => text(by.shell)),
    ...row('PBS_O_QUEUE PBS_QUEUE', queue),
    ...row(
      'PBS_ARRAY_INDEX PBS_ARRAYID',
      ofArray((_, { index }) => macro(index)),
      true,
    ),
    ...row(
      'PBS_ARRAY_ID',
      ofArray(() => macro('$(Cluster)[].gryphus')),
      true,
    ),
    ...row('NCPUS PBS_NUM_PPN OMP_NUM_THREADS', ({ cpus }) => text(cpus)),
    ...row('PBS_NP', ({ cpus, nodes }) => text(cpus * nodes)),
    ...row('PBS_NUM_NODES', ({ nodes }) => text(nodes)),
    ...row('PBS_TASKNUM PBS_NODENUM PBS_VNODENUM', () => text(0)),
  ],
  sge: [
    ...row('JOB_ID', () => macro('$(Cluster)'), true),
    ...row('JOB_NAME REQUEST', ({ name }) => text(name), true),
    ...row('SGE_TASK_ID', ({ index, wishes }) => (wishes.array === undefined ? text('undefined') : macro(index)), true),
    ...row(
      'SGE_TASK_FIRST',
      ({ wishes }) => text(wishes.array === undefined ? 'undefined' : least(wishes.array)),
      true,
    ),
    ...row('SGE_TASK_LAST', ({ wishes }) => text(wishes.array === undefined ? 'undefined' : last(wishes.array)), true),
    ...row(
      'SGE_TASK_STEPSIZE',
      ({ wishes }) => text(wishes.array === undefined ? 'undefined' : step(wishes.array)),
      true,
    ),
    ...row('NSLOTS', ({ cpus }) => text(cpus)),
    ...row('NHOSTS NQUEUES', () => text(1)),
    ...row('QUEUE', queue),
    ...row('RESTARTED', () => text(0)),
    ...row('ENVIRONMENT', () => text('BATCH')),
    ...row('SGE_O_WORKDIR', submitDirectory, true),
    ...row('SGE_O_HOME', ({ by }) => text(by.home)),
    ...row('SGE_O_HOST', ({ by }) => text(by.host)),
    ...row('SGE_O_LOGNAME', ({ by }) => text(by.user)),
    ...row('SGE_O_PATH', ({ by }) => text(by.path)),
    ...row('SGE_O_SHELL', ({ by }) => text(by.shell)),
  ],
  lsf: [
    ...row('LSB_JOBID LSB_BATCH_JID', () => macro('$(Cluster)'), true),
    ...row(
      'LSB_JOBNAME',
      ({ name, wishes, index }) => (wishes.array === undefined ? text(name) : macro(`${name}[${index}]`)),
      true,
    ),
    ...row('LSB_JOBINDEX', ({ index, wishes }) => (wishes.array === undefined ? text(0) : macro(index)), true),
    ...row(
      'LSB_JOBINDEX_STEP',
      ofArray((array) => macro(String(step(array)))),
      true,
    ),
    ...row(
      'LSB_JOBINDEX_END',
      ofArray((array) => macro(String(last(array)))),
      true,
    ),
    ...row('LSB_DJOB_NUMPROC LSB_MAX_NUM_PROCESSORS', ({ cpus }) => text(cpus)),
    ...row('LSB_QUEUE', queue),
    ...row('LSB_SUB_HOST', ({ by }) => text(by.host)),
    ...row('LSB_SUB_USER', ({ by }) => text(by.user)),
    ...row('LSB_PROJECT_NAME', ({ wishes }) => text(wishes.project ?? 'default')),
    ...row('LS_SUBCWD LS_EXECCWD', submitDirectory, true),
  ],
};
