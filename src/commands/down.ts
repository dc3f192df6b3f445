import { Flags } from '@oclif/core';
import { GryphusCommand, prose } from './command.ts';

export class Down extends GryphusCommand {
  static override summary = 'Stop the Scheduler, its GridManagers and its Redis.';
  static override description =
    prose(`Jobs at sites keep running, and so do those of the pool; the next \`up\` collects their results. With --vacate, for
      when this machine is about to be switched off, its worker ends as well: its jobs are told to end, keep what they save then (a checkpoint, or
      what ON_EXIT_OR_EVICT names), and run again after the next \`up\`. Those that have not ended in 4 s are left behind, unless a checkpoint is
      being written. The unit of \`up --systemd\` does this when the machine or the log-in ends.`);
  static override examples = [
    '<%= config.bin %> down',
    '<%= config.bin %> down --vacate',
    '<%= config.bin %> down --json',
  ];
  static override flags = {
    vacate: Flags.boolean({ summary: "Vacate the jobs of this machine's worker, and end it." }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Down);
    const { Gryphus } = await import('../index.ts');
    const status = await Gryphus.down({ ...this.openOptions(flags), vacate: flags.vacate });
    process.stdout.write(
      flags.json ? `${JSON.stringify(status, undefined, 2)}\n` : 'Gryphus is down; jobs at sites keep running.\n',
    );
  }
}
