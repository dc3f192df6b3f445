import { Flags } from '@oclif/core';
import { GryphusCommand, prose, terminalWidth } from '../command.ts';
import { failureLines, pilotLines } from '../show/glideins.ts';

export class GlideinList extends GryphusCommand {
  static override summary = 'List the workers that were sent to sites.';
  static override description =
    prose(`waiting: in the site's queue; running: started, not connected yet; home: connected, takes jobs, BUSY of
its CORES are in use; draining: takes no more jobs; LEFT: its remaining time. Below the table, for each site, the latest
pilot that failed within the last hour, and why.`);
  static override examples = [
    '<%= config.bin %> glidein list',
    '<%= config.bin %> glidein list --site cluster1 --json',
  ];
  static override flags = {
    site: Flags.string({ helpValue: '<name>', summary: 'Only those of this site.' }),
    json: Flags.boolean({ summary: 'A JSON array.' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(GlideinList);
    await this.withGryphus(flags, async (gryphus) => {
      const glideins = await gryphus.glideins();
      const all = await glideins.list();
      const pilots = all.filter((pilot) => flags.site === undefined || pilot.site === flags.site);
      // An unknown site is a typing error.
      if (pilots.length === 0 && flags.site !== undefined) await (await this.configuration(flags)).site(flags.site);
      const lines = flags.json
        ? [
            JSON.stringify(
              pilots.map(({ id: _id, token: _token, ad: _ad, ...shown }) => shown),
              undefined,
              2,
            ),
          ]
        : [...pilotLines(pilots, terminalWidth()), ...failureLines(await glideins.failures(), flags.site)];
      process.stdout.write(`${lines.join('\n')}\n`);
    });
  }
}
