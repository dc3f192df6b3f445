import { Flags } from '@oclif/core';
import { GryphusCommand, prose, terminalWidth } from './command.ts';
import { tableLines } from './show/table.ts';

export class Userprio extends GryphusCommand {
  static override summary = "Show the owners of the pool's jobs and their user priorities.";
  static override description =
    prose(`A smaller number is a better priority. It approaches the number of cores that the owner uses, with a
half-life of one day, and is never below 0.5. If all owners want more cores, they share the pool in inverse proportion to it.`);
  static override examples = ['<%= config.bin %> userprio', '<%= config.bin %> userprio --json'];
  static override flags = { json: Flags.boolean({ summary: 'A JSON array.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(Userprio);
    const owners = await this.withGryphus(flags, (gryphus) => gryphus.owners(), false);
    const heads = ['User Name', ' Priority', ' Cores In Use', ' Jobs Waiting'];
    const rows = owners.map(({ owner, priority, inUse, waiting }) => [
      owner,
      priority.toFixed(2),
      String(inUse),
      String(waiting),
    ]);
    const lines = flags.json
      ? [JSON.stringify(owners, undefined, 2)]
      : [...tableLines(heads, rows, terminalWidth()), `Number of users: ${owners.length}`];
    process.stdout.write(`${lines.join('\n')}\n`);
  }
}
