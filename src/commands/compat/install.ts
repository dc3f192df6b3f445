import { Flags } from '@oclif/core';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { GryphusError } from '../../errors.ts';
import { shellWords } from '../../util/shell-quote.ts';
import { GryphusCommand, needed, prose } from '../command.ts';
import { CONDOR, CONDOR_OWN, Q_COMMANDS, SLURM } from './names.ts';

/** Marks a file that may be written again. */
const MARK = '# Written by gryphus compat install.';

export class CompatInstall extends GryphusCommand {
  static override summary = 'Write commands of Slurm, PBS or Grid Engine and HTCondor that speak for this agent.';
  static override description = prose(`Writes small commands into DIRECTORY: sbatch, squeue, scancel, sacct, scontrol,
sinfo and srun (within a job); condor_submit, condor_q, condor_rm and others; qsub, qstat, qdel, qhold and qrls in the manner of PBS
or, with --qsub sge, of Grid Engine, which also has qacct. Put the directory first in PATH, and tools that call these commands use
Gryphus. An option that they do not know is an error.`);
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
  };
  static override args = { directory: needed('where the commands are written') };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(CompatInstall);
    const directory = resolve(args.directory);
    mkdirSync(directory, { recursive: true });
    const program = [process.execPath, process.argv[1] ?? 'gryphus'];
    const home =
      flags.home === undefined ? '' : `GRYPHUS_HOME=${shellWords([resolve(flags.home)])} export GRYPHUS_HOME\n`;
    const write = (name: string, spoken: string) => {
      const file = join(directory, name);
      if (existsSync(file) && !readFileSync(file, 'utf8').includes(MARK)) {
        throw new GryphusError('conflict', `${file} exists, and is not ours.`, {
          suggestions: ['Choose another directory.'],
        });
      }
      writeFileSync(
        file,
        `#!/bin/sh\n${MARK}\n${home}exec ${shellWords([...program, 'compat', 'speak', spoken])} "$@"\n`,
      );
      chmodSync(file, 0o755);
    };
    const same = [...SLURM, ...CONDOR_OWN, ...Object.keys(CONDOR)];
    const q = Q_COMMANDS[flags.qsub];
    for (const name of same) write(name, name);
    for (const name of q) write(name, `${flags.qsub}-${name}`);
    process.stdout.write(`${same.length + q.length} commands in ${directory}\n`);
    process.stdout.write(`Put them first in PATH: export PATH=${shellWords([directory])}:$PATH\n`);
  }
}
