import { Flags } from '@oclif/core';
import { GryphusCommand, prose } from './command.ts';

export class Down extends GryphusCommand {
  static override summary = 'Stop the Scheduler, its GridManagers and its Redis.';
  static override description = prose('Jobs at sites keep running; the next `up` collects their results.');
  static override examples = ['<%= config.bin %> down', '<%= config.bin %> down --json'];
  static override flags = { json: Flags.boolean({ summary: 'A JSON object.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(Down);
    const { Gryphus } = await import('../index.ts');
    const status = await Gryphus.down(this.openOptions(flags));
    process.stdout.write(
      flags.json ? `${JSON.stringify(status, undefined, 2)}\n` : 'Gryphus is down; jobs at sites keep running.\n',
    );
  }
}
