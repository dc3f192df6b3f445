import { Flags } from '@oclif/core';
import { GryphusError } from '../../errors.ts';
import { GryphusCommand, needed, prose } from '../command.ts';

export class SiteRm extends GryphusCommand {
  static override summary = 'Forget a site.';
  static override description = prose(
    'Refused while jobs are at the site, unless --force is given: they could not be brought home any more.',
  );
  static override examples = ['<%= config.bin %> site rm cluster1', '<%= config.bin %> site rm cluster1 --force'];
  static override args = { name: needed('the site') };
  static override flags = { force: Flags.boolean({ summary: 'Also with jobs there.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteRm);
    const configuration = await this.configuration(flags);
    await configuration.site(args.name);
    if (!flags.force) await this.#refuseInUse(args.name, flags);
    if (!configuration.removeSite(args.name)) {
      throw new GryphusError('not-permitted', `Site '${args.name}' is built in and cannot be removed.`, {
        suggestions: [`Change it with: gryphus site add ${args.name} local --batch fork`],
      });
    }
    process.stdout.write(`Site ${args.name} is removed.\n`);
  }

  async #refuseInUse(name: string, flags: { readonly home?: string | undefined }): Promise<void> {
    await this.withGryphus(flags, async (gryphus) => {
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
    });
  }
}
