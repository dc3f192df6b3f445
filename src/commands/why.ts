import { GryphusError } from '../errors.ts';
import type { Gryphus } from '../index.ts';
import { firstOf } from '../util/first-of.ts';
import { GryphusCommand, Out, prose, word } from './command.ts';
import { JsonList, listFlags } from './json-list.ts';
import { constraintFlag, selections, targets } from './select.ts';
import { WhyGroups } from './show/why.ts';

export class WhyCommand extends GryphusCommand {
  static override strict = false;
  static override summary = 'Explain why a job is not running, or how it ended.';
  static override description = prose(
    `From a job's hold reason, the site's own reason, the connection, the credential and the queue; equal answers are given
once, for all of their jobs. Named jobs are explained even after they have left the queue, with the last lines of their
standard error; of a named cluster, only those that failed.`,
  );
  static override examples = ['<%= config.bin %> why 12.3', '<%= config.bin %> why 12 --json'];
  static override args = { jobs: word('clusters (12), jobs (12.3) or users') };
  static override flags = {
    constraint: constraintFlag,
    ...listFlags,
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(WhyCommand);
    const words = argv as string[];
    const out = new Out();
    const list = flags.json || flags.jsonl ? new JsonList(out, flags.jsonl) : undefined;
    const groups = new WhyGroups();
    let found = 0;
    await this.withGryphus(flags, async (gryphus) => {
      for (const one of selections({ words, constraint: flags.constraint })) {
        for await (const why of gryphus.why(one)) {
          found++;
          if (list) list.add(JSON.stringify(why));
          else groups.add(why);
          await out.breathe();
        }
      }
      for (const text of groups.texts()) out.text(text);
      if (found === 0)
        for (const line of await this.#nothing(gryphus, words, flags.constraint)) if (!list) out.line(line);
    });
    list?.end();
    await out.flush();
  }

  /** Nothing holds up what was named: it ended well, or never existed. */
  async #nothing(gryphus: Gryphus, words: readonly string[], constraint: string | undefined): Promise<string[]> {
    const lines: string[] = [];
    if (words.length === 0)
      return [`Nothing to explain: no job ${constraint === undefined ? 'is in the queue' : 'in the queue fits'}.`];
    for (const [i, target] of targets({ words }).entries()) {
      const known = await firstOf(gryphus.jobs({ ...target, limit: 1, attributes: [] }));
      if (!known)
        throw new GryphusError('not-found', `There is no job ${words[i]}, neither in the queue nor in the history.`, {
          suggestions: ['See `gryphus q` and `gryphus history`.'],
        });
      lines.push(`${words[i]}: nothing to explain: all jobs have completed with exit status 0.`);
    }
    return lines;
  }
}
