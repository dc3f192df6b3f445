import { GryphusError } from '../errors.ts';
import { isParallel } from './parallel-node.ts';
import { readNumber, type TextSource } from './values.ts';

/** The nodes of a parallel job at a site. */
export interface Nodes {
  readonly count: number;
  /** Cores of each node, a multiple of its ranks. */
  readonly cpus: number;
  /** MPI processes on each node. */
  readonly ranks: number;
}

/** More nodes than any machine has. */
export const TOO_MANY_NODES = 1_000_000;

/**
 * What a job's ad says about nodes, by the attributes of HTCondor's blahp (`HostNumber`, `NodeNumber`: ranks on all
 * nodes, `SMPGranularity`: ranks on each) or of its parallel universe (`MaxHosts`, which is 1 in all other jobs);
 * undefined if nothing. Throws 'bad-input' if
 * there can be no such nodes.
 */
export function nodesOf(job: TextSource): Nodes | undefined {
  const parallel = isParallel(job);
  const hosts =
    amount(job, 'HostNumber', 'machine_count') ?? (parallel ? amount(job, 'MaxHosts', 'machine_count') : undefined);
  const total = amount(job, 'NodeNumber');
  const each = amount(job, 'RanksPerNode', 'ranks_per_node') ?? amount(job, 'SMPGranularity');
  if (hosts === undefined && total === undefined && each === undefined) return undefined;
  const count = hosts ?? (total === undefined || each === undefined ? 1 : total / each);
  const ranks = each ?? (total === undefined ? undefined : total / count);
  if (!Number.isInteger(count) || (ranks !== undefined && !Number.isInteger(ranks))) {
    const by = hosts === undefined ? `SMPGranularity = ${each ?? 1}` : `machine_count = ${hosts}`;
    throw wrong(
      `NodeNumber = ${total ?? 1} is not a multiple of ${by}.`,
      'Every node has as many ranks as the others.',
    );
  }
  const requested = readNumber(job, 'RequestCpus') ?? 1;
  // Unless the job says otherwise, each core has a rank.
  const cpus = requested > 1 ? Math.ceil(requested) : (ranks ?? 1);
  if (ranks !== undefined && cpus % ranks !== 0) {
    throw wrong(
      `The ${cpus} cores of a node cannot be shared evenly by ${ranks} ranks.`,
      'request_cpus counts the cores of each node: make it a multiple of ranks_per_node.',
    );
  }
  return { count, cpus, ranks: ranks ?? cpus };
}

function amount(job: TextSource, attribute: string, command = `+${attribute}`): number | undefined {
  const text = job.get(attribute);
  if (text === undefined || /^undefined$/i.test(text)) return undefined;
  const number = readNumber(job, attribute);
  const problem = amountProblem(number);
  if (number === undefined || problem !== undefined) throw wrong(`${command} = ${text} ${problem ?? ''}.`, EXAMPLE);
  return number;
}

/** Why there cannot be so many nodes or ranks, to follow `command = value`; undefined if there can. */
export function amountProblem(number: number | undefined): string | undefined {
  if (number === undefined || !Number.isInteger(number) || number < 1) return 'is not a number of 1 or more';
  return number >= TOO_MANY_NODES ? 'is more than any site has' : undefined;
}

const EXAMPLE = 'Write for example machine_count = 4 and ranks_per_node = 8.';

function wrong(message: string, remedy: string): GryphusError {
  return new GryphusError('bad-input', message, { suggestions: [remedy] });
}
