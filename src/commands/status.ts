import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { AdText, DaemonStatus, SiteStatus } from '../index.ts';
import { adFlags } from './ad-flags.ts';
import { GryphusCommand, prose, terminalWidth, word } from './command.ts';
import { CONDOR_STATUS } from './other-words.ts';
import { printAds } from './print-ads.ts';
import type { Shown } from './show/autoformat.ts';
import { siteAdLines } from './show/site-ads.ts';
import { statusLines } from './show/status.ts';
import type { Width } from './show/width.ts';

export class Status extends GryphusCommand {
  static override strict = false;
  static override summary = 'Show the daemons, the queue, the sites and the pool; starts nothing.';
  static override description =
    prose(`Exit status 3 if the Scheduler is not running. With --pool, the name of a slot or a machine, or an option of
condor_status, shows only the pool's slots; with --sites, only the sites, as the broker matches jobs with them.`);
  static override examples = [
    '<%= config.bin %> status',
    '<%= config.bin %> status --pool',
    `<%= config.bin %> status --constraint 'State == "Claimed"' -af Name RemoteOwner JobId`,
    '<%= config.bin %> status --compact',
    '<%= config.bin %> status --sites',
    `<%= config.bin %> status --sites --constraint 'FreeCpus > 8 && Cost == 0' -af Name FreeCpus`,
  ];
  static override args = { names: word('slots (slot1@node7) or machines (node7) of the pool') };
  static condor = CONDOR_STATUS;
  static override flags = {
    pool: Flags.boolean({ summary: "The pool's slots, as condor_status shows them." }),
    compact: Flags.boolean({ summary: 'A line for each machine of the pool.' }),
    avail: Flags.boolean({ aliases: ['available'], summary: 'Slots that can take jobs.' }),
    claimed: Flags.boolean({ aliases: ['run'], summary: 'Slots in use, with their owners and jobs.' }),
    state: Flags.boolean({ summary: 'How long slots have been in their states.' }),
    totals: Flags.boolean({ aliases: ['total'], summary: 'Only the totals.' }),
    sites: Flags.boolean({ summary: 'A table of the sites: cores, jobs, measured waits and run times (min:s).' }),
    constraint: Flags.string({
      char: 'c',
      helpValue: '<expression>',
      summary: 'Only slots (with --sites, sites) for which this ClassAd expression is true.',
    }),
    ...adFlags,
    long: Flags.boolean({ char: 'l', summary: 'Whole ClassAds of slots (with --sites, of sites).' }),
    json: Flags.boolean({ summary: 'A JSON object; of slots and of sites, an array of ClassAds.' }),
    limit: Flags.integer({ helpValue: '<n>', min: 0, summary: 'Show at most this many slots or sites.' }),
    wide: Flags.boolean({ summary: "Do not truncate lines to the terminal's width." }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Status);
    const width = flags.wide ? undefined : terminalWidth();
    if (flags.sites) return this.#sites(flags, width);
    if (isAboutSlots(argv as string[], flags)) return this.#pool(argv as string[], flags, width);
    let status: DaemonStatus | undefined;
    let sites: readonly SiteStatus[] = [];
    let slots: readonly AdText[] = [];
    try {
      await this.withGryphus(
        flags,
        async (gryphus) => {
          status = await gryphus.status();
          sites = await gryphus.sites();
          slots = await gryphus.slots();
        },
        false,
      );
    } catch (error) {
      // The daemons of an older version keep its queue; what runs can be told without it.
      const known = error instanceof GryphusError && ['queue-unavailable', 'state-version'].includes(error.code);
      if (!known) throw error;
      if (error.code === 'state-version') process.stderr.write(`gryphus: ${error.message}\n`);
    }
    if (!status) {
      const { Gryphus } = await import('../index.ts');
      status = await Gryphus.statusWithoutQueue(this.openOptions(flags));
    }
    if (!status.running) process.exitCode = 3;
    const { poolLine } = await import('./show/slots.ts');
    const lines = flags.json
      ? [JSON.stringify({ ...status, sites }, undefined, 2)]
      : statusLines(status, sites, width, poolLine(slots));
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
  }

  async #sites(flags: Form, width: Width): Promise<void> {
    const ads = await this.withGryphus(flags, (gryphus) => gryphus.siteAds(flags.constraint), false);
    await print(limited(ads, flags.limit), flags, (chosen) => siteAdLines(chosen, width));
  }

  async #pool(names: readonly string[], flags: Form & Views, width: Width): Promise<void> {
    const all = await this.withGryphus(flags, (gryphus) => gryphus.slots(flags.constraint), false);
    const { claimedLines, isNamed, isState, machineLines, slotLines, stateLines, totalLines } = await import(
      './show/slots.ts'
    );
    const unknown = names.find((name) => !all.some((ad) => isNamed(ad, name)));
    if (unknown !== undefined)
      throw new GryphusError('bad-input', `The pool has no slot or machine ${JSON.stringify(unknown)} now.`, {
        suggestions: ['gryphus status --pool'],
      });
    const ads = all
      .filter((ad) => names.length === 0 || names.some((name) => isNamed(ad, name)))
      .filter((ad) => !flags.avail || isState(ad, 'Unclaimed'))
      .filter((ad) => !flags.claimed || isState(ad, 'Claimed'));
    const now = Math.floor(Date.now() / 1000);
    await print(limited(ads, flags.limit), flags, (chosen) => {
      if (flags.totals) return totalLines(chosen, width);
      if (flags.compact) return machineLines(chosen, width);
      if (flags.claimed) return claimedLines(chosen, now, width);
      return flags.state ? stateLines(chosen, now, width) : slotLines(chosen, now, width);
    });
    if (all.length === 0 && flags.constraint === undefined && process.stderr.isTTY)
      process.stderr.write('gryphus: the pool has no workers now.\n');
  }
}

interface Views {
  readonly pool: boolean;
  readonly compact: boolean;
  readonly avail: boolean;
  readonly claimed: boolean;
  readonly state: boolean;
  readonly totals: boolean;
}

interface Form {
  readonly home?: string | undefined;
  readonly constraint?: string | undefined;
  readonly limit?: number | undefined;
  readonly long: boolean;
  readonly json: boolean;
  readonly jsonl: boolean;
  readonly xml: boolean;
  readonly attributes?: string | undefined;
  readonly af?: string[] | undefined;
  readonly 'af-format': string;
  readonly format?: string[] | undefined;
  readonly 'print-format'?: string | undefined;
}

/** Without names or views, `status --json` is about the daemons, like `status`. */
function isAboutSlots(names: readonly string[], flags: Form & Views): boolean {
  const { pool, compact, avail, claimed, state, totals, constraint, limit } = flags;
  const views = [pool, compact, avail, claimed, state, totals, flags.long, flags.jsonl, flags.xml];
  const values = [constraint, limit, flags.attributes, flags.af, flags.format, flags['print-format']];
  return names.length > 0 || views.includes(true) || values.some((value) => value !== undefined);
}

function limited(ads: readonly AdText[], limit: number | undefined): readonly AdText[] {
  return limit === undefined ? ads : ads.slice(0, limit);
}

/** Prints ClassAds in the requested format; by default as a table. */
async function print(
  ads: readonly AdText[],
  flags: Form,
  table: (ads: readonly AdText[]) => readonly string[],
): Promise<void> {
  const { long, json, jsonl, xml, attributes, af, format } = flags;
  if (long || json || jsonl || xml || [attributes, af, format].some((value) => value !== undefined))
    return printAds(shown(ads), flags);
  const file = flags['print-format'];
  const lines = file === undefined ? table(ads) : (await formattedBy(ads, file)).lines;
  process.stdout.write(lines.map((line) => `${line}\n`).join(''));
}

async function formattedBy(ads: readonly AdText[], file: string): Promise<{ readonly lines: readonly string[] }> {
  const { formatted } = await import('./print-format/table.ts');
  return formatted(shown(ads), file);
}

async function* shown(ads: readonly AdText[]): AsyncGenerator<Shown> {
  for (const ad of ads) yield { ad };
}
