import { Flags } from '@oclif/core';
import { GryphusCommand, prose, terminalWidth } from '../command.ts';
import { siteLines } from '../show/sites.ts';

export class SiteList extends GryphusCommand {
  static override summary = 'List the sites and their jobs.';
  static override description = prose(
    'HERE: jobs that wait at home for the site; QUEUED, RUNNING, UNKNOWN: jobs that it has.',
  );
  static override examples = ['<%= config.bin %> site list', '<%= config.bin %> site list --json'];
  static override flags = {
    json: Flags.boolean({ summary: 'A JSON array.' }),
    quiet: Flags.boolean({ char: 'q', summary: 'Only the names; starts nothing.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(SiteList);
    if (flags.quiet) {
      const names = [...(await (await this.configuration(flags)).sites()).keys()];
      process.stdout.write(names.map((name) => `${name}\n`).join(''));
      return;
    }
    await this.withGryphus(flags, async (gryphus) => {
      const sites = await gryphus.sites();
      const lines = flags.json ? [JSON.stringify(sites, undefined, 2)] : siteLines(sites, terminalWidth());
      process.stdout.write(`${lines.join('\n')}\n`);
    });
  }
}
