import type { Gryphus } from '../../index.ts';
import type { SlurmJob, SlurmState } from './slurm-job.ts';
import { expand } from './array-indices.ts';
import { slurmJobs } from './slurm-jobs.ts';

/** What a word of a command line names: a job or tasks of it by number, or jobs by their name. */
export type SgeName =
  | { readonly kind: 'number'; readonly cluster: number; readonly tasks?: ReadonlySet<number>; readonly text: string }
  | { readonly kind: 'name'; readonly name: string; readonly text: string };

/** `12`, `12.3`, `12.1-9:2`, `name`. `tasks`: those of `-t`. */
export function sgeName(text: string, tasks?: string): SgeName {
  const [, cluster, range = tasks] = /^(\d{1,15})(?:\.([\d\-:,]+))?$/.exec(text) ?? [];
  if (cluster === undefined) return { kind: 'name', name: text, text };
  return { kind: 'number', cluster: Number(cluster), text, ...(range === undefined ? {} : { tasks: expand(range) }) };
}

export function isNamedSo(name: SgeName, job: SlurmJob): boolean {
  if (name.kind === 'name') return job.name === name.name;
  return name.cluster === job.cluster && (name.tasks === undefined || name.tasks.has(job.task ?? 1));
}

/** The jobs that these words name, or all, in order of their ids. */
export async function sgeJobs(
  gryphus: Gryphus,
  names: readonly SgeName[] | undefined,
  where: 'queue' | 'everywhere',
): Promise<SlurmJob[]> {
  const numbers = names?.flatMap((one) => (one.kind === 'number' ? [{ cluster: one.cluster, text: one.text }] : []));
  const byNumber = numbers !== undefined && numbers.length === names?.length;
  const found: SlurmJob[] = [];
  for await (const job of slurmJobs(gryphus, byNumber ? numbers : undefined, where)) {
    if (names === undefined || names.some((name) => isNamedSo(name, job))) found.push(job);
  }
  return found.sort((a, b) => a.cluster - b.cluster || (a.task ?? 0) - (b.task ?? 0));
}

/** Grid Engine's letters for each state; none for a job that has ended. */
const LETTERS: Readonly<Record<SlurmState, string | undefined>> = {
  PENDING: 'qw',
  RUNNING: 'r',
  SUSPENDED: 's',
  COMPLETING: 'dr',
  COMPLETED: undefined,
  CANCELLED: undefined,
  FAILED: undefined,
  TIMEOUT: undefined,
  NODE_FAIL: undefined,
  OUT_OF_MEMORY: undefined,
  DEADLINE: undefined,
};

export function lettersOf({ state, reason, made }: SlurmJob): string | undefined {
  return state === 'PENDING' && made && reason !== 'Priority' ? 'hqw' : LETTERS[state];
}
