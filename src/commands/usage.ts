import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { GryphusCommand, prose, terminalWidth } from './command.ts';
import { usageLines } from './show/usage.ts';

export class Usage extends GryphusCommand {
  static override summary = 'Show what ended jobs used, and what our own daemons spent for it.';
  static override description =
    prose(`Capacity is run time times cores. The leverage is the capacity for each second of processor time that the daemons spent
at home. The wait ratio of a job is the time that it waited for its run time. Owners who used more than an equal share of the capacity are
heavy, the others light. Pilots and the managers of DAGs are not counted.`);
  static override examples = [
    '<%= config.bin %> usage',
    '<%= config.bin %> usage --by site --since 2026-11-01',
    '<%= config.bin %> usage --by month --json',
  ];
  static override flags = {
    by: Flags.string({
      options: ['owner', 'site', 'month', 'batch'],
      default: 'owner',
      summary: 'What the rows of the table are.',
    }),
    since: Flags.string({ helpValue: '<date>', summary: 'The first day, such as 2026-11-01 (UTC); default: all.' }),
    json: Flags.boolean({ summary: 'A JSON object.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Usage);
    const { by, since = '' } = flags;
    if (by !== 'owner' && by !== 'site' && by !== 'month' && by !== 'batch')
      throw new GryphusError('usage', `--by ${by}`);
    if (since !== '' && !/^\d{4}-\d\d-\d\d$/.test(since))
      throw new GryphusError('usage', `--since ${since}: it must be a date like 2026-11-01.`);
    const report = await this.withGryphus(flags, async (gryphus) => (await gryphus.accounts()).usage(by, since), false);
    const lines = flags.json ? [JSON.stringify(report, undefined, 2)] : usageLines(report, by, terminalWidth());
    process.stdout.write(`${lines.join('\n')}\n`);
  }
}
