import { Flags } from '@oclif/core';
import { BACKEND_NAMES } from '../../index.ts';
import { askAtTerminal } from '../ask.ts';
import { foundLines } from '../show/sites.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

export class SiteAdd extends GryphusCommand {
  static override summary = 'Add a place that runs jobs.';
  static override description =
    prose(`URL is ssh://user@host:port, a Host of your ~/.ssh/config, local, or gt2://host/jobmanager-name for a GRAM service of the
grid. Gryphus detects the batch system unless you name it with --batch. Everything else can be changed later in the site's file,
whose path is printed; \`gryphus config --docs\` lists its keys.`);
  static override examples = [
    '<%= config.bin %> site add cluster1 ssh://me@login.example.org',
    '<%= config.bin %> site add box box.example.org --running 4',
    '<%= config.bin %> site add ce gt2://ce.example.org/jobmanager-slurm',
    `<%= config.bin %> site add c2 ssh://c2 --batch slurm --prelude 'module load slurm' --scratch /scratch/me`,
  ];
  static override args = {
    name: needed('the name of the site, as jobs refer to it'),
    url: needed('how to reach it'),
  };
  static override flags = {
    batch: Flags.option({
      options: BACKEND_NAMES,
      summary: 'The batch system (fork: plain processes); detected if not given.',
    })(),
    transport: Flags.option({
      options: ['ssh2', 'openssh'] as const,
      summary: 'The built-in ssh client (default), or the ssh program.',
    })(),
    prelude: Flags.string({
      helpValue: '<shell>',
      summary: 'Shell lines to run at the site before any command of ours.',
    }),
    scratch: Flags.string({
      helpValue: '<directory>',
      summary: 'Directory for our jobs at the site; default ~/.gryphus.',
    }),
    queue: Flags.string({ helpValue: '<name>', summary: 'Queue or partition for jobs that name none.' }),
    project: Flags.string({ helpValue: '<name>', summary: 'Project or account for jobs that name none.' }),
    queued: Flags.integer({ helpValue: '<n>', min: 1, summary: 'Most jobs of ours in its queue.' }),
    running: Flags.integer({ helpValue: '<n>', min: 1, summary: 'Most jobs of ours running at once.' }),
    force: Flags.boolean({ summary: 'Replace a site of this name.' }),
    test: Flags.boolean({ summary: 'Test it afterwards, as `site test` does.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteAdd);
    const configuration = await this.configuration(flags);
    const keys = {
      url: args.url,
      batch: flags.batch,
      transport: flags.transport,
      prelude: flags.prelude,
      scratch: flags.scratch,
      queue: flags.queue,
      project: flags.project,
      'limits.queued': flags.queued,
      'limits.running': flags.running,
    };
    await configuration.addSite(args.name, keys, {
      replace: flags.force,
      ask: askAtTerminal,
      found: (found) => process.stdout.write(`${foundLines(args.name, found).join('\n')}\n`),
    });
    process.stdout.write(`Site ${args.name} is written to ${configuration.siteFile(args.name).file}.\n`);
    if (flags.test) {
      const { SiteTest } = await import('./test.ts');
      await new SiteTest([args.name, ...(flags.home === undefined ? [] : ['--home', flags.home])], this.config).run();
    } else process.stdout.write(`Check it with: gryphus site test ${args.name}\n`);
  }
}
