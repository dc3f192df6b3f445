import { Flags } from '@oclif/core';
import { GryphusCommand, prose } from '../command.ts';
import { stepText } from '../show/sites.ts';

export class AlarmTest extends GryphusCommand {
  static override summary = 'Send a test by every way that alarms take: mail, hook, desktop.';
  static override description = prose(
    'Needs no daemon. Exit status 1 where one of the ways fails; the ways are keys of config.toml (notify.*, alarms.*).',
  );
  static override examples = ['<%= config.bin %> alarm test', '<%= config.bin %> alarm test --json'];
  static override flags = { json: Flags.boolean({ summary: 'One JSON object a line.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(AlarmTest);
    for await (const step of (await this.configuration(flags)).testAlarms()) {
      process.stdout.write(flags.json ? `${JSON.stringify(step)}\n` : stepText(step));
      if (!step.ok) process.exitCode = 1;
    }
  }
}
