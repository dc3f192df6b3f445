import { askAtTerminal } from '../ask.ts';
import { GryphusCommand, interruptible, needed, prose } from '../command.ts';
import { listFlags } from '../json-list.ts';
import { printSteps } from '../print-steps.ts';

export class SiteTest extends GryphusCommand {
  static override summary = 'Check a site step by step and say what to fix.';
  static override description =
    prose(`Name, connection, host key, log-in, home, disk, batch system, and a job that runs. Exit status 1 at the first step that
fails. Where a log-in needs a person, it uses the connection that \`gryphus site login\` opened; without one, it asks in
the terminal.`);
  static override examples = ['<%= config.bin %> site test cluster1', '<%= config.bin %> site test cluster1 --json'];
  static override args = { name: needed('the site') };
  static override flags = listFlags;

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteTest);
    await this.withGryphus(flags, async (gryphus) => {
      const { signal } = interruptible();
      await printSteps(gryphus.testSite(args.name, askAtTerminal, signal), flags);
    });
  }
}
