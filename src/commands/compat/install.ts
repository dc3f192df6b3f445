import { Flags } from '@oclif/core';
import { shellWords } from '../../util/shell-quote.ts';
import { GryphusCommand, needed, prose } from '../command.ts';
import { clientPath } from '../../command-server/client-path.ts';
import { CONDOR, CONDOR_OWN, Q_COMMANDS, SLURM } from './names.ts';
import { OurFiles } from './our-files.ts';

export class CompatInstall extends GryphusCommand {
  static override summary = 'Write commands of Slurm, PBS or Grid Engine and HTCondor that speak for this agent.';
  static override description =
    prose(`Writes small commands into DIRECTORY: ${SLURM.join(', ')} (srun outside a job submits one, as sbatch does, and shows
the output of its tasks);
${[...Object.keys(CONDOR), ...CONDOR_OWN].join(', ')}; ${Q_COMMANDS.pbs.join(', ')} in the manner of PBS or, with --qsub sge, of Grid
Engine, which also has qacct. Put the directory first in PATH, and tools that call these commands use Gryphus. An option that they do
not know is an error.
When commands come within a minute of each other, a command server answers the next ones in a few milliseconds. It ends when none has come for
five minutes, and with \`gryphus down\`.`);
  static override examples = [
    '<%= config.bin %> compat install ~/.local/gryphus-bin',
    '<%= config.bin %> compat install ./bin --qsub sge',
    '<%= config.bin %> compat install ./bin --home /data/agent',
  ];
  static override flags = {
    qsub: Flags.option({
      options: ['pbs', 'sge'] as const,
      default: 'pbs' as const,
      summary: 'Whose manner qsub, qstat and qdel have.',
    })(),
    server: Flags.boolean({
      default: true,
      allowNo: true,
      summary: 'Let a command server answer commands that are called often (default).',
    }),
  };
  static override args = { directory: needed('where the commands are written') };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(CompatInstall);
    const files = new OurFiles(
      args.directory,
      '# Written by gryphus compat install.',
      flags.home,
      flags.server ? clientPath() : undefined,
    );
    const same = [...SLURM, ...CONDOR_OWN, ...Object.keys(CONDOR)];
    const q = Q_COMMANDS[flags.qsub];
    for (const name of same) files.writeCommand(name, name);
    for (const name of q) files.writeCommand(name, `${flags.qsub}-${name}`);
    process.stdout.write(`${same.length + q.length} commands in ${files.directory}\n`);
    process.stdout.write(`Put them first in PATH: export PATH=${shellWords([files.directory])}:$PATH\n`);
  }
}
