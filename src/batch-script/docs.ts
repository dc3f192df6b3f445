import { type Option, type OptionFate, SYSTEMS } from './model.ts';
import { DIALECTS } from './read.ts';
import { VARIABLES } from './variables.ts';

const FATE: Readonly<Record<OptionFate, (option: Option, title: string) => string>> = {
  done: ({ becomes }) => becomes,
  site: (_, title) => `passed on as written to a site that runs ${title}; elsewhere a warning`,
  without: ({ becomes }) => `warning: ${becomes}`,
  refused: ({ becomes }) => `refused: ${becomes}`,
};

const INTRODUCTION = `# Batch scripts

\`gryphus submit job.sh\` runs a script that was written for Slurm, PBS, Grid Engine or LSF as it is. The first of its
\`#SBATCH\`, \`#PBS\`, \`#$\` or \`#BSUB\` lines says which system it is for; a script without any is a job with the default
requests. The words after the script are its arguments. Like the real systems, Gryphus keeps a copy of the script when
it is submitted.

\`\`\`sh
gryphus submit job.sh input.dat            # in the pool, or at submit.default_site
gryphus submit --site cluster1 job.sh      # at a site
gryphus submit --dry-run job.sh            # what it becomes
gryphus submit job.sh -a 'request_disk = 10G'
\`\`\`

**Where it runs.** The site is that of \`--site\`, else the script's own (Slurm's \`--clusters\`), else the configured site that
has the name of its queue or partition, else \`submit.default_site\`. In the pool on this machine, and at sites on this
machine, the script runs in the directory in which it was submitted (PBS and Grid Engine: in the home directory, unless
the script says otherwise), and reads and writes the files there. At any other site it runs in a directory of its own, and
its new files come home; name the files that it reads: \`-a 'transfer_input_files = data.csv'\`.

**What it asks for** goes to a site of the same system in that system's own words: nodes, tasks, constraints, licences
and whatever else has no equivalent here. Elsewhere an option without an equivalent is one warning with file and line,
and a job of several nodes is a parallel job ([parallel.md](parallel.md)). An option that the real system does not have is an error.

**Arrays** become one cluster, with one job for each index; \`%4\` becomes \`max_materialize = 4\`. A job of an array has a
number of its own, as in Slurm: cluster × 10,000,000 + index.

**Dependencies** hold the jobs until the others have ended as they should. If that cannot happen any more, the hold reason
is \`DependencyNeverSatisfied\`, or the job is removed (PBS, \`--kill-on-invalid-dep=yes\`, LSF's \`-ti\`). A held job has not
ended: release it or remove it.

**Variables** of the script's system are set as it sets them. At a site of that system its own are left alone, except those
marked with *. Those that name the directory of the submit name the job's own directory where it does not run in place.
Variables that name the machine on which the job runs are set by the real systems only.
`;

/** docs/batch-scripts.md. */
export function batchScriptsPage(): string {
  const parts = SYSTEMS.map((system) => {
    const { title, options } = DIALECTS[system];
    const rows = options.map((option) => {
      const names = option.names.split(' ').map((name) => `\`${name}\``);
      return `| ${names.join(', ')} | ${FATE[option.fate](option, title)} |`;
    });
    const variables = VARIABLES[system].map(({ name, native }) => `\`${name}\`${native ? '\\*' : ''}`);
    return `## ${title}\n\n| option | what it becomes |\n| --- | --- |\n${rows.join('\n')}\n\nVariables: ${variables.join(', ')}.\n`;
  });
  return `${INTRODUCTION}\n${parts.join('\n')}`;
}
