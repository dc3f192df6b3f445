import { GryphusError } from '../errors.ts';
import { parseJobId } from '../job/ids.ts';
import { shellWords } from '../util/shell-quote.ts';
import { GryphusCommand, needed, prose } from './command.ts';
import { typedShell } from './typed-shell.ts';

export class Ssh extends GryphusCommand {
  static override strict = false;
  static override summary = "Open a shell in a running job's directory, or run one command there.";
  static override description =
    prose(`In the pool it uses the connection that the job's worker already has; at a site the batch system's own command: srun --overlap
(Slurm), condor_ssh_to_job (HTCondor), \`gryphus ssh\` (another Gryphus), and nothing for plain processes. PBS, Torque, Grid
Engine, LSF and GRAM have no such command. A single argument after \`--\` is a shell command line; several are a program and its
arguments. The exit status is the command's, or 255 if it could not be started. What is started here ends with the job.`);
  static override examples = [
    '<%= config.bin %> ssh 12.3',
    "<%= config.bin %> ssh 12.3 -- 'tail -f *.log'",
    '<%= config.bin %> ssh 12.3 -- gdb -p 4711',
  ];
  static override args = { job: needed('a job (12.3); 12 is 12.0') };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Ssh);
    const [job = '', ...words] = argv as string[];
    const id = parseJobId(job) ?? parseJobId(`${job}.0`);
    if (!id)
      throw new GryphusError('usage', `'${job}' is not a job.`, { suggestions: ['Write a job id, such as 12.3.'] });
    const command = words.length > 1 ? shellWords(words) : words[0];
    await this.withGryphus(flags, async (gryphus) => {
      process.exitCode = await typedShell(gryphus, id, command);
    });
  }
}
