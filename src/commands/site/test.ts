import { Flags } from '@oclif/core';
import { askAtTerminal } from '../ask.ts';
import { GryphusCommand, needed, prose } from '../command.ts';
import { stepText } from '../show/sites.ts';

export class SiteTest extends GryphusCommand {
  static override summary = 'Check a site step by step, and say what to mend.';
  static override description =
    prose(`Name, connection, host key, log-in, home, disk, batch system, and a job that runs. Exit status 1 at the first step that
fails.`);
  static override examples = ['<%= config.bin %> site test cluster1'];
  static override args = { name: needed('the site') };
  static override flags = { json: Flags.boolean({ summary: 'One JSON object a line.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteTest);
    await this.withGryphus(flags, async (gryphus) => {
      for await (const step of gryphus.testSite(args.name, askAtTerminal)) {
        process.stdout.write(flags.json ? `${JSON.stringify(step)}\n` : stepText(step));
        if (!step.ok) process.exitCode = 1;
      }
    });
  }
}
