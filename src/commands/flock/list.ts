import { Flags } from '@oclif/core';
import { GryphusCommand, terminalWidth } from '../command.ts';
import { partnerLines } from '../show/flock.ts';

export class FlockList extends GryphusCommand {
  static override summary = 'List the agreements with other pools.';
  static override description =
    'OFFERED: cores that they lend us now; BORROWED: cores of theirs that our jobs hold; LENT: cores of ours that theirs hold.';
  static override examples = ['<%= config.bin %> flock list', '<%= config.bin %> flock list --json'];
  static override flags = { json: Flags.boolean({ summary: 'A JSON array.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(FlockList);
    const flock = await (await this.configuration(flags)).flock();
    const partners = await flock.list();
    const lines = flags.json ? [JSON.stringify(partners, undefined, 2)] : partnerLines(partners, terminalWidth());
    process.stdout.write(`${lines.join('\n')}\n`);
  }
}
