import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { AdText, DaemonStatus, SiteStatus } from '../index.ts';
import { printFormatFlag } from './ad-flags.ts';
import { GryphusCommand, prose, terminalWidth } from './command.ts';
import { printAds } from './print-ads.ts';
import type { Shown } from './show/autoformat.ts';
import { siteAdLines } from './show/site-ads.ts';
import { statusLines } from './show/status.ts';

export class Status extends GryphusCommand {
  static override summary = 'Show the daemons, the queue and the sites; starts nothing.';
  static override description =
    prose(`Exit status 3 where the Scheduler is not running. With --sites, or with an option that is about ClassAds, only the
sites, as the broker matches jobs with them.`);
  static override examples = [
    '<%= config.bin %> status',
    '<%= config.bin %> status --sites',
    `<%= config.bin %> status --pool --constraint 'State == "Claimed"' -af Name RemoteOwner JobId`,
    `<%= config.bin %> status --constraint 'FreeCpus > 8 && Cost == 0' -af Name FreeCpus`,
  ];
  static override flags = {
    json: Flags.boolean({ summary: 'A JSON object; of the sites, an array of ClassAds.' }),
    sites: Flags.boolean({ summary: 'A table of the sites: cores, jobs, measured waits and run times (min:s).' }),
    pool: Flags.boolean({
      summary: "The pool's slots, as condor_status shows them; with --constraint, -l, -af, --json.",
    }),
    compact: Flags.boolean({ summary: 'A line for each machine of the pool.' }),
    constraint: Flags.string({
      char: 'c',
      helpValue: '<expression>',
      summary: 'Only sites (with --pool, slots) for which this ClassAd expression is true.',
    }),
    long: Flags.boolean({ char: 'l', summary: "The sites' whole ClassAds." }),
    af: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<attribute>',
      summary: 'Values of attributes or expressions of the sites; written -af:LETTERS A B … as in HTCondor.',
    }),
    'af-format': Flags.string({ hidden: true, default: '' }),
    'print-format': printFormatFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Status);
    if (flags.pool || flags.compact) return this.#pool(flags);
    let status: DaemonStatus | undefined;
    let sites: readonly SiteStatus[] = [];
    let ads: readonly AdText[] = [];
    const ofSites =
      flags.sites ||
      flags.long ||
      flags.af !== undefined ||
      flags.constraint !== undefined ||
      flags['print-format'] !== undefined;
    try {
      await this.withGryphus(
        flags,
        async (gryphus) => {
          status = await gryphus.status();
          if (ofSites) ads = await gryphus.siteAds(flags.constraint);
          else sites = await gryphus.sites();
        },
        false,
      );
    } catch (error) {
      if (!(error instanceof GryphusError) || error.code !== 'queue-unavailable') throw error;
    }
    if (!status) {
      const { Gryphus } = await import('../index.ts');
      status = await Gryphus.statusWithoutQueue(this.openOptions(flags));
    }
    if (!status.running) process.exitCode = 3;
    if (ofSites && (flags.long || flags.json || flags.af)) return printAds(shown(ads), flags);
    if (flags['print-format'] !== undefined) {
      const { formatted } = await import('./print-format/table.ts');
      const { lines } = await formatted(shown(ads), flags['print-format']);
      process.stdout.write(lines.map((line) => `${line}\n`).join(''));
      return;
    }
    const lines = ofSites
      ? siteAdLines(ads, terminalWidth())
      : flags.json
        ? [JSON.stringify({ ...status, sites }, undefined, 2)]
        : statusLines(status, sites, terminalWidth());
    process.stdout.write(`${lines.join('\n')}\n`);
  }

  async #pool(flags: PoolFlags): Promise<void> {
    const ads = await this.withGryphus(flags, (gryphus) => gryphus.slots(flags.constraint), false);
    if (flags.long || flags.json || flags.af) return printAds(shown(ads), flags);
    const width = terminalWidth();
    const { machineLines, slotLines } = await import('./show/slots.ts');
    const lines = flags.compact ? machineLines(ads, width) : slotLines(ads, Math.floor(Date.now() / 1000), width);
    if (lines.length > 0) process.stdout.write(`${lines.join('\n')}\n`);
  }
}

interface PoolFlags {
  readonly home?: string | undefined;
  readonly constraint?: string | undefined;
  readonly compact: boolean;
  readonly long: boolean;
  readonly json: boolean;
  readonly af?: string[] | undefined;
  readonly 'af-format': string;
}

async function* shown(ads: readonly AdText[]): AsyncGenerator<Shown> {
  for (const ad of ads) yield { ad };
}
