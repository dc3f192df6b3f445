import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import type { Gryphus } from '../../index.ts';
import { askAtTerminal } from '../ask.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

export class SiteRm extends GryphusCommand {
  static override summary = 'Remove a site.';
  static override description = prose(
    `Refused while jobs are at the site, unless --force is given, since their results could no longer be brought home. What
Gryphus keeps there (cached inputs, workers) stays, and its path is printed; --clean removes it.`,
  );
  static override examples = [
    '<%= config.bin %> site rm cluster1 --clean',
    '<%= config.bin %> site rm cluster1 --force',
  ];
  static override args = { name: needed('the site') };
  static override flags = {
    force: Flags.boolean({ summary: 'Even if it has jobs.' }),
    clean: Flags.boolean({ summary: "Also delete our files there; other agents' files stay." }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteRm);
    const { name } = args;
    await (await this.configuration(flags)).site(name);
    await this.withGryphus(flags, async (gryphus) => {
      if (!flags.force) await refuseInUse(gryphus, name);
      const { directory, command } = await gryphus.leaveSite(name, { clean: flags.clean, ask: askAtTerminal });
      process.stdout.write(`Site ${name} is removed.\n`);
      if (flags.clean && directory !== undefined) {
        throw new GryphusError('site-refused', `Part of ${directory} could not be removed there.`, {
          suggestions: [`${command ?? ''}   # removes it`],
        });
      }
      if (directory !== undefined)
        process.stdout.write(`Cached files remain there in ${directory}. To remove them, too:\n  ${command ?? ''}\n`);
    });
  }
}

async function refuseInUse(gryphus: Gryphus, name: string): Promise<void> {
  const site = (await gryphus.sites()).find((one) => one.name === name);
  const jobs = site ? site.queuedThere + site.running + site.unknown : 0;
  if (jobs > 0) {
    throw new GryphusError('conflict', `Site '${name}' has ${jobs === 1 ? 'a job' : `${jobs} jobs`} of yours.`, {
      suggestions: ['Wait for them or remove them; --force forgets them.'],
    });
  }
  const constraint = `JobStatus == 3 && GryphusSite =?= ${JSON.stringify(name)}`;
  const { done } = await gryphus.query({ constraint, limit: 1, attributes: [] }).next();
  if (done !== true) {
    throw new GryphusError('conflict', `Site '${name}' has yet to confirm that removed jobs of yours stopped.`, {
      suggestions: [`gryphus rm --force --constraint '${constraint}'   # forgets them`],
    });
  }
}
