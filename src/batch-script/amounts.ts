import { GryphusError } from '../errors.ts';
import type { Destination } from './description.ts';
import type { System, Wishes } from './model.ts';

/** What the jobs ask of a machine, as lines of a submit description and words for a site of the script's own system. */
export interface Amount {
  /** Cores, on each machine. */
  readonly cpus: number;
  readonly lines: readonly string[];
  readonly words: readonly string[];
}

/** Throws GryphusError 'bad-input' if no machines of the destination could be what the script wants. */
export function amountOf(wishes: Wishes, native: boolean, to: Destination, system: System | undefined): Amount {
  const nodes = wishes.nodes ?? 1;
  if (nodes > 1 && !native) return severalNodes(wishes, nodes, to, system);
  const perTask = wishes.cpusPerTask ?? 1;
  const tasks = wishes.tasks ?? (wishes.tasksPerNode ?? 1) * nodes;
  const slurmTasks = native && system === 'slurm' && (tasks > 1 || nodes > 1);
  const all = system === 'pbs' ? Math.max(perTask, wishes.tasks ?? 1) : perTask * tasks;
  const cpus = slurmTasks || nodes > 1 ? perTask : all;
  const gpus = (wishes.gpus ?? 0) * (wishes.gpusPer === 'task' ? tasks : 1);
  const inWords =
    native && (wishes.memoryInWords === true || (system === 'slurm' && wishes.memory?.per === 'cpu' && slurmTasks));
  const memory = inWords ? undefined : totalMemory(wishes, all, Math.max(1, gpus));
  return {
    cpus: all,
    lines: requests(wishes, to, { cpus, memory, gpus }),
    words: slurmTasks
      ? [
          `--nodes=${nodes}`,
          `--ntasks=${tasks}`,
          ...(wishes.tasksPerNode === undefined ? [] : [`--ntasks-per-node=${wishes.tasksPerNode}`]),
          ...(inWords ? [`--mem-per-cpu=${Math.ceil((wishes.memory?.bytes ?? 0) / 2 ** 20)}M`] : []),
        ]
      : [],
  };
}

interface Machine {
  readonly cpus: number;
  /** Bytes. */
  readonly memory: number | undefined;
  readonly gpus: number;
}

function requests({ diskBytes }: Wishes, to: Destination, { cpus, memory, gpus }: Machine): string[] {
  return [
    `request_cpus = ${cpus}`,
    ...(memory === undefined
      ? to.kind === 'pool'
        ? []
        : ['request_memory = undefined']
      : [`request_memory = ${Math.ceil(memory / 2 ** 20)}`]),
    ...(diskBytes === undefined ? [] : [`request_disk = ${Math.ceil(diskBytes / 1024)}`]),
    ...(gpus === 0 ? [] : [`request_gpus = ${gpus}`]),
  ];
}

/** A parallel job in the pool, or for a site of another system: the machines are equal. */
function severalNodes(wishes: Wishes, nodes: number, to: Destination, system: System | undefined): Amount {
  const where = to.kind === 'pool' ? 'the pool gives' : `site ${to.name} (${to.batch}) gets`;
  if (wishes.unequalNodes) throw refused(`The script asks for ${nodes} nodes that differ, and ${where} equal ones.`);
  const perTask = wishes.cpusPerTask ?? 1;
  const tasks = wishes.tasksPerNode ?? Math.ceil((wishes.tasks ?? nodes) / nodes);
  if (wishes.tasks !== undefined && wishes.tasks !== tasks * nodes)
    throw refused(`The script asks for ${wishes.tasks} tasks on ${nodes} nodes, which do not have equally many.`);
  // PBS counts the cores of a node, Slurm those of a task.
  const cpus = system === 'pbs' ? perTask : perTask * tasks;
  if (cpus % tasks !== 0)
    throw refused(
      `The script asks for ${tasks} processes on the ${cpus} cores of each node, which is no whole number of cores each.`,
    );
  const { gpus = 0, gpusPer } = wishes;
  const onEach = gpusPer === 'task' ? gpus * tasks : gpusPer === 'job' ? Math.ceil(gpus / nodes) : gpus;
  const all = totalMemory(wishes, cpus, Math.max(1, onEach));
  const memory = all !== undefined && wishes.memory?.per === 'job' ? Math.ceil(all / nodes) : all;
  return {
    cpus,
    lines: [
      `machine_count = ${nodes}`,
      `ranks_per_node = ${tasks}`,
      ...requests(wishes, to, { cpus, memory, gpus: onEach }),
    ],
    words: [],
  };
}

function refused(message: string): GryphusError {
  return new GryphusError('bad-input', message, {
    suggestions: ['Name a site whose batch system gives a job such nodes: gryphus submit --site NAME SCRIPT'],
  });
}

/** In bytes, on one node. */
function totalMemory({ memory }: Wishes, cpus: number, gpus: number): number | undefined {
  if (memory === undefined) return undefined;
  return memory.bytes * (memory.per === 'cpu' ? cpus : memory.per === 'gpu' ? gpus : 1);
}
