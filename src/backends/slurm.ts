import type { AttemptSpec } from '../site/contract.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { Account, Backend } from './contract.ts';
import { slurmRefusal } from './slurm-refusals.ts';
import { slurmEntry, slurmVerdict } from './slurm-states.ts';

/** Slurm driven by its commands (slurm.sh); facts from 22.05, options that every release since 17 has. */
export const slurm: Backend = {
  name: 'slurm',
  shell: ['slurm.sh', 'slurm-job.sh'],
  detect:
    'command -v sbatch >/dev/null 2>&1 && look slurm "$(bounded 20 sbatch --version 2>&1)" squeue -h -n gryphus-none',
  lacks: { command: 'request_disk', instead: '--tmp=10G' },
  patience: { lookEvery: 30_000, lookAgain: 1000, lost: 12_000, lag: 30_000, verdict: 10_000, closing: 10_000 },
  arrays: true,
  accounts: true,
  runsAgain: true,
  submitWords,
  // `--parsable` prints the id; if there are several clusters, a semicolon and the cluster follow.
  idOf: (answer) => /^(\d+(?:_\d+)?)(;[^;]*)?$/.exec(answer)?.[1],
  refusalOf: slurmRefusal,
  queueEntry: (rest) => {
    const [state = '', nodes = '', ...reason] = rest.split('|');
    return slurmEntry(state, reason.join('|'), nodes);
  },
  accountOf,
  // An array's element has a number of its own, which srun wants.
  beside: (id, commandLine) =>
    `id=$(squeue -h -j ${id} -o %A) && exec srun --jobid="$id" --overlap --nodes=1 --ntasks=1 --quiet /bin/sh -c ${shellQuote(commandLine)}`,
  capacityOf: (line) => {
    const [, free, total] = /^\d+\/(\d+)\/\d+\/(\d+)$/.exec(line) ?? [];
    return free === undefined ? undefined : { cpus: Number(total), freeCpus: Number(free) };
  },
};

function submitWords(spec: AttemptSpec): string[] {
  const { cpus, memoryMb, gpus, walltimeSeconds, wholeHost, nodes } = spec.resources;
  const { queue, project, extraArgs } = spec.batch;
  return [
    `--job-name=${spec.title}`,
    ...(nodes === undefined
      ? ['--ntasks=1', `--cpus-per-task=${Math.max(1, Math.ceil(cpus))}`]
      : [`--nodes=${nodes.count}`, `--ntasks-per-node=${nodes.ranks}`, `--cpus-per-task=${cpus / nodes.ranks}`]),
    ...(memoryMb === undefined ? [] : [`--mem=${Math.ceil(memoryMb)}M`]),
    ...(wholeHost ? ['--exclusive'] : []),
    ...(gpus ? [`--gres=gpu:${gpus}`] : []),
    // Slurm counts whole minutes.
    ...(walltimeSeconds === undefined ? [] : [`--time=${Math.max(1, Math.ceil(walltimeSeconds / 60))}`]),
    ...(queue === undefined ? [] : [`--partition=${queue}`]),
    ...(project === undefined ? [] : [`--account=${project}`]),
    ...extraArgs,
  ];
}

/**
 * A line of `sacct -n -P -X`: `JobID|State|ExitCode|Start|End|NodeList|WorkDir`. The directory, or that of its group,
 * names the attempt.
 */
function accountOf(line: string): Account | undefined {
  const [id = '', state = '', exit = '', , , , ...dir] = line.split('|');
  if (!/^\d+(_\d+)?$/.test(id)) return undefined;
  const verdict = slurmVerdict(state);
  if (verdict === undefined) return undefined;
  const key = /\/(?:jobs\/([^/]+)|groups\/gryphus\.([^/]+)\.\d+)$/.exec(dir.join('|'))?.slice(1).find(Boolean);
  const message = `${verdict.message}, exit ${exit}`;
  return { id, by: verdict.by, message, ...(key === undefined ? {} : { key }) };
}
