import { mkdirSync, readFileSync } from 'node:fs';
import * as z from 'zod';
import type { Gryphus } from '../../index.ts';
import { Refused } from './options.ts';
import { sbatch } from './sbatch.ts';
import { namedJobs, slurmJobs } from './slurm-jobs.ts';

type Write = (text: string) => void;

/** What Snakemake 7 writes of a job into its script; a resource that is not known yet is a word in angle brackets. */
const PROPERTIES = z.object({
  rule: z.string().optional(),
  groupid: z.string().optional(),
  jobid: z.union([z.string(), z.number()]),
  threads: z.number().optional(),
  resources: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
});

/** A rule's resources as options of sbatch. */
const OPTIONS: Readonly<Record<string, string>> = {
  mem_mb: '--mem',
  mem_mb_per_cpu: '--mem-per-cpu',
  runtime: '--time',
  gpu: '--gpus',
  slurm_partition: '--partition',
  slurm_account: '--account',
  constraint: '--constraint',
  site: '--clusters',
};

/** Submits a job script of Snakemake, with options of sbatch before it, and writes the job's id; the exit status. */
export async function snakemakeSubmit(
  gryphus: Gryphus,
  words: readonly string[],
  write: Write,
  warn: Write,
): Promise<number> {
  const script = words.at(-1);
  if (script === undefined) throw new Refused('no job script is given');
  const { rule, groupid, jobid, threads, resources } = properties(script);
  const name = rule ?? groupid ?? 'group';
  const logs = `.snakemake/gryphus_logs/${name.replaceAll('/', '_')}`;
  mkdirSync(logs, { recursive: true });
  const asked = Object.entries(OPTIONS).flatMap(([resource, option]) => {
    const value = resources[resource];
    return value === undefined || /^<.*>$/.test(String(value)) ? [] : [`${option}=${value}`];
  });
  let id = '';
  const status = await sbatch(
    gryphus,
    [
      '--parsable',
      `--job-name=${name}.${jobid}`,
      `--output=${logs}/%j.log`,
      ...(threads === undefined ? [] : [`--cpus-per-task=${threads}`]),
      ...asked,
      ...words,
    ],
    (text) => (id += text),
    warn,
  );
  // Without the cluster, which would be no part of a job's name for the other commands.
  write(`${id.trim().replace(/;.*/, '')}\n`);
  return status;
}

function properties(script: string): z.infer<typeof PROPERTIES> {
  let text: string;
  try {
    text = readFileSync(script, 'utf8');
  } catch {
    throw new Refused(`Unable to open file ${script}`);
  }
  const [, json] = /^# properties = (.*)$/m.exec(text) ?? [];
  if (json === undefined) throw new Refused(`${script} is no job script of Snakemake: it has no line '# properties ='`);
  try {
    return PROPERTIES.parse(JSON.parse(json));
  } catch {
    throw new Refused(`${script}: the line '# properties =' is not as Snakemake 7 writes it`);
  }
}

/** Writes `running`, `success` or `failed` for one job; the exit status. */
export async function snakemakeStatus(gryphus: Gryphus, words: readonly string[], write: Write): Promise<number> {
  const [id] = words;
  if (id === undefined || words.length > 1) throw new Refused('one job id is needed');
  for await (const { state } of slurmJobs(gryphus, namedJobs(id), 'everywhere')) {
    write(`${SAID[state] ?? 'failed'}\n`);
    return 0;
  }
  throw new Refused(`there is no job ${id}`);
}

const SAID: Readonly<Partial<Record<string, string>>> = {
  PENDING: 'running',
  RUNNING: 'running',
  SUSPENDED: 'running',
  COMPLETING: 'running',
  COMPLETED: 'success',
};
