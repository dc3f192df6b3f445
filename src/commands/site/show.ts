import { Flags } from '@oclif/core';
import type { SiteStatus, SiteWaysView } from '../../index.ts';
import { clockText } from '../../util/plain-text.ts';
import { GryphusCommand, needed } from '../command.ts';
import { backoffRows, settingRows } from '../show/sites.ts';
import { visible } from '../show/width.ts';

export class SiteShow extends GryphusCommand {
  static override summary = 'Show all settings of a site, with defaults, and the limits that were learned.';
  static override examples = ['<%= config.bin %> site show cluster1', '<%= config.bin %> site show cluster1 --json'];
  static override args = { name: needed('the site') };
  static override flags = { json: Flags.boolean({ summary: 'A JSON object.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteShow);
    const configuration = await this.configuration(flags);
    const site = await configuration.site(args.name);
    if (flags.json) {
      process.stdout.write(`${JSON.stringify({ ...site, now: await this.#now(flags, site.name) }, undefined, 2)}\n`);
      return;
    }
    const { file, there } = configuration.siteFile(args.name);
    const rows = [
      ...settingRows(site),
      ['file', there ? file : 'built in'] as const,
      ...backoffRows(await this.#now(flags, site.name)),
    ];
    const width = Math.max(...rows.map(([key]) => key.length));
    for (const [key, text] of rows) process.stdout.write(`${key.padEnd(width)}  ${visible(text)}\n`);
    const ways = await this.#ways(flags, args.name);
    if (ways === undefined) return;
    process.stdout.write(`\nHow workers reach the agent, as of ${clockText(ways.at / 1000, Date.now() / 1000)}:\n`);
    for (const line of ways.because) process.stdout.write(`  ${visible(line)}\n`);
    if (ways.came) {
      const { connection, mailbox } = ways.came;
      process.stdout.write(`  Connected at that time: ${connection} by ssh, ${mailbox} by mailbox.\n`);
    }
  }

  /** Known if the agent has run before; it is not started for this. */
  async #ways(flags: { readonly home?: string | undefined }, site: string): Promise<SiteWaysView | undefined> {
    return this.withGryphus(flags, (gryphus) => gryphus.siteWays(site), false).catch(() => undefined);
  }

  /** What the queue knows about the site; nothing if the queue is down, since this does not start it. */
  async #now(flags: { readonly home?: string | undefined }, name: string): Promise<SiteStatus | undefined> {
    const { GryphusError } = await import('../../errors.ts');
    try {
      return await this.withGryphus(
        flags,
        async (gryphus) => (await gryphus.sites()).find((site) => site.name === name),
        false,
      );
    } catch (error) {
      if (error instanceof GryphusError && error.code === 'queue-unavailable') return undefined;
      throw error;
    }
  }
}
