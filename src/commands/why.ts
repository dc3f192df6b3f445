import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { GryphusCommand, Out, prose, word } from './command.ts';
import { JsonList, listFlags } from './json-list.ts';
import { selections } from './select.ts';
import { whyText } from './show/why.ts';

export class WhyCommand extends GryphusCommand {
  static override strict = false;
  static override summary = 'Say why a job is not running.';
  static override description = prose(
    `One answer for each job, joined from our hold, the site's own reason, the connection, the credential and the queue.`,
  );
  static override examples = ['<%= config.bin %> why 12.3', '<%= config.bin %> why 12 --json'];
  static override args = { jobs: word('clusters (12), jobs (12.3) or users') };
  static override flags = {
    constraint: Flags.string({
      char: 'c',
      helpValue: '<expression>',
      summary: 'Jobs for which this ClassAd expression is true.',
    }),
    ...listFlags,
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(WhyCommand);
    const words = argv as string[];
    const out = new Out();
    const list = flags.json || flags.jsonl ? new JsonList(out, flags.jsonl) : undefined;
    let found = 0;
    await this.withGryphus(flags, async (gryphus) => {
      for (const one of selections({ words, constraint: flags.constraint })) {
        for await (const why of gryphus.why(one)) {
          found++;
          if (list) list.add(JSON.stringify(why));
          else out.text(whyText(why));
          await out.breathe();
        }
      }
    });
    list?.end();
    await out.flush();
    if (found === 0 && words.length > 0) {
      throw new GryphusError('not-found', `There is no such job in the queue: ${words.join(' ')}.`, {
        suggestions: [`It may have ended: gryphus history ${words.join(' ')}`],
      });
    }
  }
}
