import { setTimeout as delay } from 'node:timers/promises';
import { Flags } from '@oclif/core';
import type { TopRow } from '../index.ts';
import { GryphusCommand, interruptible, prose, terminalWidth, word } from './command.ts';
import { sayMissing } from './missing.ts';
import { allFlag, constraintFlag, mustName, oneOf } from './select.ts';
import { topLines } from './show/top.ts';

export class Top extends GryphusCommand {
  static override strict = false;
  static override summary = 'Show what running jobs use: processor, memory, time; redrawn every few seconds.';
  static override description = prose(
    `Covers jobs in the pool; for others, shows only how long they have been running. Without a terminal, or with --once, one table: CPU% is
then the mean since the start.`,
  );
  static override examples = [
    '<%= config.bin %> top --all',
    '<%= config.bin %> top 12 --interval 5',
    '<%= config.bin %> top --all --json',
  ];
  static override args = { jobs: word('clusters (12), jobs (12.3) or users') };
  static override flags = {
    constraint: constraintFlag,
    all: allFlag,
    once: Flags.boolean({ summary: 'Print one table and exit.' }),
    json: Flags.boolean({ summary: 'A JSON array, once.' }),
    interval: Flags.integer({
      char: 'i',
      min: 1,
      max: 1_000_000,
      default: 2,
      helpValue: '<seconds>',
      summary: 'Interval between two tables.',
    }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Top);
    const words = argv as string[];
    const named = oneOf(mustName({ words, ...flags }));
    const { signal } = interruptible();
    await this.withGryphus(flags, async (gryphus) => {
      const look = () => gryphus.top(named);
      if (flags.json) {
        process.stdout.write(`${JSON.stringify(await look(), undefined, 2)}\n`);
        return sayMissing(gryphus, words, 'queue');
      }
      const once = flags.once || !process.stdout.isTTY;
      let before: readonly TopRow[] = [];
      while (!signal.aborted) {
        const rows = await look();
        const lines = topLines(rows, before, terminalWidth());
        const height = once ? lines.length : Math.max(1, process.stdout.rows - 1);
        process.stdout.write(`${once ? '' : '\u001b[H\u001b[J'}${lines.slice(0, height).join('\n')}\n`);
        if (once) return sayMissing(gryphus, words, 'queue');
        before = rows;
        await delay(flags.interval * 1000, undefined, { signal }).catch(() => undefined);
      }
      process.exitCode = 0;
    });
  }
}
