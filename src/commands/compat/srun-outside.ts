import { basename } from 'node:path';
import type { Gryphus, OwnOptions } from '../../index.ts';
import { followRun } from '../run-follow.ts';
import { RunFiles } from '../run-files.ts';
import { Refused } from './options.ts';

/** The options of srun that are about its step; all others are also sbatch's. */
const OWN: OwnOptions = new Map([
  ...['-l', '--label', '-u', '--unbuffered', '-Q', '--quiet', '-v', '--verbose', '-W', '--exact', '--pty'].map(
    (name) => [name, undefined] as const,
  ),
  ...['--mpi', '--cpu-bind'].map((name) => [name, 'needed'] as const),
]);
/** Passed to the srun of a Slurm site, and to ours. */
const OF_STEP: ReadonlySet<string> = new Set(['-l', '--label', '-u', '--unbuffered', '--mpi', '--cpu-bind']);

/** What has no meaning for a command that waits for its job, and what to use instead. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ...['-a', '--array', '-d', '--dependency', '-H', '--hold'].map((name) => [name, 'use sbatch'] as const),
  ...['-o', '--output', '-e', '--error'].map(
    (name) => [name, 'outside a job the output is shown; redirect it: srun … >FILE'] as const,
  ),
  ['--pty', 'there are no interactive jobs; `gryphus ssh JOB` opens a shell beside one that runs'],
  ['-W', 'srun ends when all its tasks have ended'],
]);

/**
 * Outside a job: submits one for the step, as sbatch would, and shows its output until it ends; the highest exit status
 * of its tasks.
 */
export async function srunOutside(
  gryphus: Gryphus,
  words: readonly string[],
  warn: (text: string) => void,
): Promise<number> {
  const { splitOptions, steps } = await import('../../index.ts');
  const { stepScript } = await steps();
  const { options, rest: command } = splitOptions('slurm', words, OWN);
  for (const { name } of options) {
    const instead = REFUSED.get(name);
    if (instead !== undefined) throw new Refused(`${name}: ${instead}`);
  }
  const [program = ''] = command;
  if (program === '') throw new Refused('No command given to execute.', 1, 'fatal');
  const step = options.flatMap(({ name, value }) => {
    if (!OF_STEP.has(name)) return [];
    return value === '' ? [name] : [`${name}=${value}`];
  });
  // Since 22.05 a step does not take them from its job.
  const cores = options.findLast(({ name }) => name === '-c' || name === '--cpus-per-task');
  const given = (...names: string[]) => options.some(({ name }) => names.includes(name));
  const files = new RunFiles(gryphus.paths.stateDir);
  const stdin = given('-i', '--input') ? undefined : await files.stdin(undefined);
  const streams = { '-o': files.stdout, '-e': files.stderr, ...(stdin === undefined ? {} : { '-i': stdin }) };
  const submitted = await gryphus
    .submit({
      text: stepScript([...(cores?.words ?? []), ...step]),
      cwd: process.cwd(),
      script: {
        system: 'slurm',
        name: basename(program),
        args: [...command],
        // A relative path is a file here.
        input: program.includes('/') && !program.startsWith('/') ? [program] : [],
        options: [
          ...options.flatMap(({ name, words: passed }) => (OWN.has(name) ? [] : passed)),
          ...Object.entries(streams).flatMap(([option, file]) => [option, file.replaceAll('%', '%%')]),
        ],
      },
    })
    .catch((error: unknown) => {
      files.remove();
      throw error;
    });
  if (!given('-Q', '--quiet')) for (const { message } of submitted.warnings) warn(`srun: warning: ${message}\n`);
  return followRun(gryphus, { cluster: submitted.cluster, proc: 0 });
}
