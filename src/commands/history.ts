import { Flags } from '@oclif/core';

import { adFlags } from './ad-flags.ts';
import { GryphusCommand, Out, terminalWidth, word } from './command.ts';
import { printAds } from './print-ads.ts';
import { sayMissing } from './missing.ts';
import { CONDOR_HISTORY } from './other-words.ts';
import { constraintFlag, oneOf, selections } from './select.ts';
import { cut } from './show/width.ts';
import { HISTORY_ATTRIBUTES, historyHead, historyLine } from './show/history.ts';

const FAILED = 'JobStatus == 4 && (ExitBySignal =?= true || ExitCode =!= 0)';

function both(one: string | undefined, other: string | undefined): string | undefined {
  return one === undefined || other === undefined ? (one ?? other) : `(${one}) && (${other})`;
}

export class History extends GryphusCommand {
  static override strict = false;
  static override summary = 'Show jobs that have left the queue, latest first.';
  static override examples = [
    '<%= config.bin %> history --limit 10',
    '<%= config.bin %> history 12 -af:jh ExitCode RemoteWallClockTime',
    '<%= config.bin %> history 12 --failed',
    `<%= config.bin %> history --constraint 'RemoteWallClockTime > 3600' --json`,
  ];
  static condor = CONDOR_HISTORY;
  static override args = { jobs: word('clusters (12), jobs (12.3) or users') };
  static override flags = {
    constraint: constraintFlag,
    failed: Flags.boolean({
      summary:
        'Only jobs that completed with an exit status other than 0, or by a signal; then why, equal reasons together.',
    }),
    limit: Flags.integer({ aliases: ['match'], helpValue: '<n>', min: 0, summary: 'Show at most this many jobs.' }),
    completedsince: Flags.integer({ min: 0, hidden: true }),
    ...adFlags,
    wide: Flags.boolean({ summary: "Do not truncate lines to the terminal's width." }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(History);
    const words = argv as string[];
    const { completedsince: from } = flags;
    const late = from === undefined ? undefined : `EnteredCurrentStatus >= ${from}`;
    const constraint = both(both(flags.failed ? FAILED : undefined, late), flags.constraint);
    const request = {
      ...oneOf(selections({ words, constraint, all: true })),
      ...(flags.limit === undefined ? {} : { limit: flags.limit }),
    };
    await this.withGryphus(flags, async (gryphus) => {
      if (flags.long || flags.json || flags.jsonl || flags.xml || flags.af || flags.format) {
        await printAds(gryphus.history(request), flags);
        return sayMissing(gryphus, words, 'history');
      }
      const width = flags.wide ? undefined : terminalWidth();
      const out = new Out();
      if (flags['print-format'] !== undefined) {
        const { formatted } = await import('./print-format/table.ts');
        const { lines } = await formatted(gryphus.history(request), flags['print-format']);
        for (const line of lines) out.line(cut(line, width));
        await out.flush();
        return sayMissing(gryphus, words, 'history');
      }
      out.line(historyHead(width));
      for await (const job of gryphus.history({ ...request, attributes: HISTORY_ATTRIBUTES })) {
        out.line(historyLine(job, width));
        await out.breathe();
      }
      if (flags.failed) {
        const { failureLines } = await import('./show/failures.ts');
        const { FAILURE_ATTRIBUTES, groupFailures } = await import('../index.ts');
        const jobs = gryphus.history({ ...request, attributes: FAILURE_ATTRIBUTES });
        const { hasColours } = await import('./show/colour.ts');
        const lines = failureLines(await groupFailures(jobs), hasColours(process.stdout));
        // Their text is printable; the colours are ours.
        out.control(['', ...lines, ''].join('\n'));
      }
      await out.flush();
      await sayMissing(gryphus, words, 'history');
    });
  }
}
