import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { GryphusCommand, prose, word } from '../command.ts';

export class GlideinStop extends GryphusCommand {
  static override strict = false;
  static override summary = 'Stop workers at sites.';
  static override description =
    prose(`With --drain, glideins take no more jobs and end after those that run; without it,
they are removed at once, and their jobs run again if their policy says so. Glideins that still wait in the site's queue are
removed in both cases.`);
  static override examples = [
    '<%= config.bin %> glidein stop --site cluster1 --drain',
    '<%= config.bin %> glidein stop 12 13.4',
    '<%= config.bin %> glidein stop --all',
  ];
  static override args = { jobs: word("pilots' jobs (12.3) or clusters (12)") };
  static override flags = {
    site: Flags.string({ helpValue: '<name>', summary: 'Glideins at this site.' }),
    all: Flags.boolean({ char: 'a', summary: 'All glideins.' }),
    drain: Flags.boolean({ summary: 'Let running jobs end first.' }),
    json: Flags.boolean({ summary: 'A JSON array: the jobs of the glideins that were told to stop.' }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(GlideinStop);
    const jobs = argv.map(String);
    if (jobs.length === 0 && flags.site === undefined && !flags.all) {
      throw new GryphusError('usage', 'No glideins were named.', {
        suggestions: ['Name jobs or clusters (`gryphus glidein list`), or use --site or --all.'],
      });
    }
    const wrong = jobs.find((one) => !/^\d+(\.\d+)?$/.test(one));
    if (wrong !== undefined) throw new GryphusError('usage', `'${wrong}' is neither a job nor a cluster.`);
    await this.withGryphus(flags, async (gryphus) => {
      const stopped = await (await gryphus.glideins()).stop(
        { jobs, ...(flags.site === undefined ? {} : { site: flags.site }) },
        flags.drain,
      );
      const what = flags.drain ? 'told to end once their running jobs have ended' : 'removed';
      if (stopped.length === 0 && flags.site !== undefined) await (await this.configuration(flags)).site(flags.site);
      if (stopped.length === 0) process.exitCode = 1;
      if (flags.json) return void process.stdout.write(`${JSON.stringify(stopped.map(({ job }) => job))}\n`);
      process.stdout.write(`${stopped.length} ${stopped.length === 1 ? 'glidein' : 'glideins'} ${what}.\n`);
    });
  }
}
