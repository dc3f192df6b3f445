import { join } from 'node:path';
import { shellWords } from '../../util/shell-quote.ts';
import { GryphusCommand, needed, prose } from '../command.ts';
import { clientPath } from '../../command-server/client-path.ts';
import { OurFiles } from './our-files.ts';

const MARK = '# Written by gryphus compat profile.';

export class CompatProfile extends GryphusCommand {
  static override summary = "Write a workflow tool's profile whose jobs run through this agent.";
  static override description =
    prose(`Writes a profile of Snakemake 7 into DIRECTORY: snakemake --profile DIRECTORY then submits,
watches and cancels its jobs through this agent, without other commands in PATH. Of a rule, threads and these resources are used:
mem_mb, mem_mb_per_cpu, runtime (minutes), gpu, slurm_partition, slurm_account, constraint, and site (the site that runs the job, or
pool). The sites must share the workflow's directory. The file config.yaml may be changed.`);
  static override examples = [
    '<%= config.bin %> compat profile snakemake ~/.config/snakemake/gryphus',
    '<%= config.bin %> compat profile snakemake ./gryphus-profile',
  ];
  static override args = {
    tool: needed('the tool', ['snakemake']),
    directory: needed('where the profile is written'),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(CompatProfile);
    const files = new OurFiles(args.directory, MARK, flags.home, clientPath());
    for (const name of ['submit', 'status']) files.writeCommand(name, `snakemake-${name}`);
    // Snakemake kills it after two seconds, and does not try again.
    files.writeCommand('cancel', 'snakemake-cancel', true);
    files.write('config.yaml', config(files.directory));
    process.stdout.write(`Use it: snakemake --profile ${shellWords([files.directory])}\n`);
  }
}

function config(directory: string): string {
  // Snakemake gives the commands to a shell, the cancelling one apart.
  const command = (name: string) => JSON.stringify(shellWords([join(directory, name)]));
  return `${MARK}
cluster: ${command('submit')}
cluster-status: ${command('status')}
cluster-cancel: ${JSON.stringify(join(directory, 'cancel'))}
jobs: 500
max-jobs-per-second: 10
max-status-checks-per-second: 10
# Files of a site may appear later here.
latency-wait: 30
rerun-incomplete: true
`;
}
