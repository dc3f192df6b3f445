import { GryphusCommand, prose } from '../command.ts';
import { listFlags } from '../json-list.ts';
import { printSteps } from '../print-steps.ts';

export class AlarmTest extends GryphusCommand {
  static override summary = 'Send a test alarm to every channel: mail, hook, desktop.';
  static override description = prose(
    'Needs no daemon. Exit status 1 if a channel fails; channels are configured in config.toml (notify.*, alarms.*).',
  );
  static override examples = ['<%= config.bin %> alarm test', '<%= config.bin %> alarm test --json'];
  static override flags = listFlags;

  async run(): Promise<void> {
    const { flags } = await this.parse(AlarmTest);
    await printSteps((await this.configuration(flags)).testAlarms(), flags);
  }
}
