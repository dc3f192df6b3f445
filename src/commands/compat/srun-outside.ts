import { basename } from 'node:path';
import type { Gryphus, OwnOptions } from '../../index.ts';
import { followRun } from '../run-follow.ts';
import { RunFiles } from '../run-files.ts';
import { runSession } from '../session.ts';
import { Refused } from './options.ts';

/** The options of srun that are about its step; all others are also sbatch's. */
const OWN: OwnOptions = new Map([
  ...['-l', '--label', '-u', '--unbuffered', '-Q', '--quiet', '-v', '--verbose', '-W', '--exact', '--pty'].map(
    (name) => [name, undefined] as const,
  ),
  ...['--mpi', '--cpu-bind'].map((name) => [name, 'needed'] as const),
  ...['-K', '--kill-on-bad-exit'].map((name) => [name, 'optional'] as const),
]);
/** Passed to the srun of a Slurm site, and to ours. */
const OF_STEP: ReadonlySet<string> = new Set(
  '-l --label -u --unbuffered --mpi --cpu-bind -K --kill-on-bad-exit'.split(' '),
);
const STREAMS = ['stdout', 'stderr'] as const;

/** What has no meaning for a command that waits for its job, and what to use instead. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ...['-a', '--array', '-d', '--dependency', '-H', '--hold'].map((name) => [name, 'use sbatch'] as const),
  ['-W', 'srun ends when all its tasks have ended'],
]);

/**
 * Outside a job: submits one for the step, as sbatch would, and shows its output until it ends; the highest exit status
 * of its tasks. With `--pty`, the command runs at this terminal, beside a job that only keeps its resources.
 */
export async function srunOutside(
  gryphus: Gryphus,
  words: readonly string[],
  warn: (text: string) => void,
): Promise<number> {
  const { sessions, splitOptions, steps } = await import('../../index.ts');
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
  const isSession = given('--pty');
  if (isSession && step.some((word) => word !== '-u'))
    throw new Refused(`--pty: one task has the terminal, without ${step.join(' ')}`);
  const stdin = isSession || given('-i', '--input') ? undefined : await files.stdin(undefined);
  // As with sbatch, both streams go to the file of -o unless -e names another.
  const shown = STREAMS.filter(
    (stream) => !given('-o', '--output') && (stream === 'stdout' || !given('-e', '--error')),
  );
  const streams = {
    ...(shown.includes('stdout') ? { '-o': files.stdout } : {}),
    ...(shown.includes('stderr') ? { '-e': files.stderr } : {}),
    ...(stdin === undefined ? {} : { '-i': stdin }),
  };
  const submitted = await gryphus
    .submit({
      text: isSession
        ? `#!/bin/sh\n${(await sessions()).sessionHolder()}`
        : (await steps()).stepScript([...(cores?.words ?? []), ...step]),
      cwd: process.cwd(),
      script: {
        system: 'slurm',
        name: basename(program),
        args: isSession ? [] : [...command],
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
  const { cluster } = submitted;
  if (!isSession) return followRun(gryphus, { cluster, proc: 0 }, shown);
  const told = (what: string) => {
    if (!given('-Q', '--quiet')) warn(`srun: job ${cluster} ${what}\n`);
  };
  told('queued and waiting for resources');
  return runSession(gryphus, { cluster, proc: 0 }, command, () => told('has been allocated resources')).finally(() =>
    files.remove(),
  );
}
