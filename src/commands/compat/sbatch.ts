import { basename } from 'node:path';
import type { Gryphus, OwnOptions, SubmitRequest } from '../../index.ts';
import { Refused } from './options.ts';
import { scriptText } from './script-file.ts';
import { slurmJobs } from './slurm-jobs.ts';

/** The options of sbatch that are about the command; all others are the script's. */
const OWN: OwnOptions = new Map([
  ...['--parsable', '--wait', '-W', '-Q', '--quiet', '--test-only'].map((name) => [name, undefined] as const),
  ['--wrap', 'needed'],
]);

const NO_SCRIPT = `This does not look like a batch script.  The first
line must start with #! followed by the path to an interpreter.
For instance: #!/bin/sh`;

/** Submits as sbatch does; the exit status. */
export async function sbatch(
  gryphus: Gryphus,
  words: readonly string[],
  write: (text: string) => void,
  warn: (text: string) => void,
): Promise<number> {
  const { readDescription, splitOptions } = await import('../../index.ts');
  const { options, rest } = splitOptions('slurm', words, OWN);
  const own = new Map(options.filter(({ name }) => OWN.has(name)).map(({ name, value }) => [name, value]));
  const passed = options.flatMap(({ name, words: given }) => (OWN.has(name) ? [] : given));
  if (own.has('--test-only')) throw new Refused('--test-only is not supported; see gryphus submit --dry-run');
  const wrap = own.get('--wrap');
  const [file, ...args] = rest;
  if (wrap !== undefined && file !== undefined) throw new Refused('Script arguments not permitted with --wrap option');
  const text =
    wrap === undefined
      ? await scriptText(readDescription, file, new Refused(`Unable to open file ${file}`))
      : `#!/bin/sh\n# This script was created by sbatch --wrap.\n\n${wrap}\n`;
  if (text === '') throw new Refused('Batch script is empty!');
  if (!text.startsWith('#!')) throw new Refused(NO_SCRIPT);
  const name = wrap === undefined ? (file === undefined ? 'sbatch' : basename(file)) : 'wrap';
  const request: SubmitRequest = {
    text,
    cwd: process.cwd(),
    ...(file === undefined ? {} : { file }),
    script: { system: 'slurm', options: [...fromEnvironment(), ...passed], args, name },
  };
  const submitted = await gryphus.submit(request);
  if (!own.has('-Q') && !own.has('--quiet'))
    for (const { line, message } of submitted.warnings)
      warn(`sbatch: warning: ${line === undefined ? '' : `line ${line}: `}${message}\n`);
  const clusters = options.find((one) => one.name === '-M' || one.name === '--clusters')?.value;
  if (own.has('--parsable')) write(`${submitted.cluster}${clusters === undefined ? '' : `;${clusters}`}\n`);
  else write(`Submitted batch job ${submitted.cluster}${clusters === undefined ? '' : ` on cluster ${clusters}`}\n`);
  return own.has('--wait') || own.has('-W') ? ended(gryphus, submitted.cluster) : 0;
}

/** Options may be set by variables (sbatch's manual, "input environment variables"). */
const VARIABLES: Readonly<Record<string, string>> = {
  SBATCH_ACCOUNT: '--account',
  SBATCH_ARRAY_INX: '--array',
  SBATCH_CLUSTERS: '--clusters',
  SBATCH_CONSTRAINT: '--constraint',
  SBATCH_EXPORT: '--export',
  SBATCH_GPUS: '--gpus',
  SBATCH_JOB_NAME: '--job-name',
  SBATCH_MEM_PER_CPU: '--mem-per-cpu',
  SBATCH_MEM_PER_NODE: '--mem',
  SBATCH_PARTITION: '--partition',
  SBATCH_QOS: '--qos',
  SBATCH_TIMELIMIT: '--time',
};

function fromEnvironment(): string[] {
  return Object.entries(VARIABLES).flatMap(([name, option]) => {
    const value = process.env[name];
    return value === undefined ? [] : [`${option}=${value}`];
  });
}

/** The highest exit status of the jobs, once all have ended. */
async function ended(gryphus: Gryphus, cluster: number): Promise<number> {
  await gryphus.wait({ clusters: [cluster], until: 'end' });
  let worst = 0;
  for await (const { exit, state } of slurmJobs(gryphus, [{ cluster, text: '' }], 'everywhere')) {
    const [code = 0, signal = 0] = exit.split(':').map(Number);
    worst = Math.max(worst, signal > 0 ? 128 + signal : code, state === 'COMPLETED' || code > 0 ? 0 : 1);
  }
  return worst;
}
