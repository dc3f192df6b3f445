import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { formatJobId } from '../job/ids.ts';
import { GryphusCommand, prose, word } from './command.ts';
import { actFlag, actJson } from './json-list.ts';
import { targets } from './select.ts';

export class Edit extends GryphusCommand {
  static override strict = false;
  static override summary = 'Change attributes of jobs.';
  static override description = prose(
    `Values are ClassAd expressions, so strings carry quotes. What a site already has of a running job does not change.`,
  );
  static override examples = [
    '<%= config.bin %> edit 12.3 JobPrio 5',
    `<%= config.bin %> edit 12 'JobBatchName="tuesday"' RequestMemory=4096`,
    `<%= config.bin %> edit --constraint 'JobStatus == 1' JobPrio=-1`,
  ];
  static override args = {
    job: word('a cluster (12), a job (12.3) or a user; then NAME VALUE or NAME=VALUE'),
  };
  static override flags = {
    constraint: Flags.string({
      char: 'c',
      helpValue: '<expression>',
      summary: 'All jobs for which this ClassAd expression is true, instead of a job.',
    }),
    json: actFlag,
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Edit);
    const words = argv as string[];
    const [target] = targets({
      words: flags.constraint === undefined ? words.splice(0, 1) : [],
      constraint: flags.constraint,
    });
    const set = assignments(words);
    if (!target || Object.keys(set).length === 0) {
      throw new GryphusError('usage', 'Name a job, an attribute and its value.', {
        suggestions: ['gryphus edit 12.3 JobPrio 5'],
      });
    }
    await this.withGryphus(flags, async (gryphus) => {
      const results = await gryphus.edit(target, set);
      const done = results.filter((one) => one.result === 'done').length;
      if (done === 0 || done < results.length) process.exitCode = 1;
      if (flags.json) return void process.stdout.write(actJson(results));
      for (const { id, result, words: why } of results) {
        if (result !== 'done') process.stderr.write(`Job ${formatJobId(id)} ${why}\n`);
      }
      for (const name of Object.keys(set)) {
        if (done > 0) process.stdout.write(`Set attribute "${name}" for ${done} matching jobs.\n`);
        else process.stderr.write(`Failed to set attribute "${name}": no job matches.\n`);
      }
    });
  }
}

/** `NAME=VALUE` words and `NAME VALUE` pairs. */
export function assignments(words: readonly string[]): Record<string, string> {
  const set: Record<string, string> = {};
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    const found = /^([A-Za-z_][\w.]*)=(?![=?!])([\s\S]*)$/.exec(word);
    const value = found ? found[2] : words[++i];
    const name = found?.[1] ?? word;
    if (value === undefined || value.trim() === '' || !/^[A-Za-z_][\w.]*$/.test(name)) {
      throw new GryphusError(
        'usage',
        value === undefined ? `'${name}' has no value.` : `'${name}' is not an attribute's name.`,
        {
          suggestions: ['Write NAME VALUE or NAME=VALUE.'],
        },
      );
    }
    set[name] = value;
  }
  return set;
}
