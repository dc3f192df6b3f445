import { Flags } from '@oclif/core';
import { GryphusCommand, needed, prose, terminalWidth } from '../command.ts';
import { agreementLines } from '../show/flock.ts';

export class FlockShow extends GryphusCommand {
  static override summary = 'Show an agreement: what each side used, and what was refused and why.';
  static override description = prose(
    `The link, what either side lends now or by which clause it does not, core hours of the last day and of 30 days, the jobs that
run here and there, and the latest refusals of both sides.`,
  );
  static override examples = ['<%= config.bin %> flock show physics', '<%= config.bin %> flock show physics --json'];
  static override args = { name: needed('the partner') };
  static override flags = { json: Flags.boolean({ summary: 'A JSON object.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(FlockShow);
    const flock = await (await this.configuration(flags)).flock();
    const view = await flock.show(args.name);
    const now = Date.now() / 1000;
    const lines = flags.json ? [JSON.stringify(view, undefined, 2)] : agreementLines(view, now, terminalWidth());
    process.stdout.write(`${lines.join('\n')}\n`);
  }
}
