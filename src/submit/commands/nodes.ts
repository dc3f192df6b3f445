import { amountProblem } from '../../job/nodes.ts';
import { UNIVERSE } from '../../job/universe.ts';
import type { JobMaker, Step } from '../maker.ts';

interface Given {
  readonly command: string;
  readonly text: string;
}

function given(job: JobMaker, ...spellings: (readonly [command: string, attribute: string])[]): Given | undefined {
  for (const [command, attribute] of spellings) {
    const text = job.param(command, attribute);
    if (text !== undefined) return { command, text };
  }
  return undefined;
}

/** The number, as HTCondor reads it: what is none counts as 0. A real submit refuses that. */
function amountOf(job: JobMaker, { command, text }: Given, attribute: string): number {
  const number = Number.parseInt(text, 10) || 0;
  const problem = amountProblem(/^\d+$/.test(text.trim()) ? number : undefined);
  if (problem === undefined) return number;
  const message = `${command} = ${text} ${problem}`;
  if (!job.scope.policy.dryRun) throw job.fault(command, message, [`Write for example ${command} = 4`], attribute);
  job.warn(`${message}. A real submit is refused.`, command);
  return number;
}

/**
 * The machines of a job, and what it wants of each: in the parallel universe, as in HTCondor, and in the grid universe,
 * where HTCondor has only `batch_extra_submit_args`.
 */
export const nodes: Step = {
  name: 'machine_count',
  run(job) {
    const { universe } = job.kind;
    const many = universe === UNIVERSE.parallel || universe === UNIVERSE.mpi;
    const scheduled = many || job.draft.bool('WantParallelScheduling') === true;
    if (!scheduled && universe !== UNIVERSE.grid) return;
    const count = given(job, ['machine_count', 'MachineCount'], ['node_count', 'NodeCount']);
    if (count !== undefined) {
      const hosts = amountOf(job, count, 'HostNumber');
      if (!scheduled) job.setInt('HostNumber', hosts);
      else for (const name of ['MinHosts', 'MaxHosts']) job.setInt(name, hosts);
    } else if (scheduled && !job.draft.has('MaxHosts')) {
      throw job.fault('universe', 'No machine_count specified!', ['Add a line machine_count = N.']);
    }
    const ranks = given(job, ['ranks_per_node', 'RanksPerNode']);
    if (ranks !== undefined) job.setInt('RanksPerNode', amountOf(job, ranks, 'RanksPerNode'));
    const whole = job.boolParam('whole_nodes', 'WholeNodes');
    if (whole !== undefined) job.setBool('WholeNodes', whole);
    if (scheduled) job.setInt('RequestCpus', 1);
    if (universe !== UNIVERSE.parallel) return;
    job.setBool('WantIOProxy', true);
    job.setBool('JobRequiresSandbox', true);
  },
};
