import { GryphusError } from '../errors.ts';
import type { ActionResult } from '../index.ts';
import { formatJobId } from '../job/ids.ts';
import { GryphusCommand, prose, word } from './command.ts';
import { actFlag, actJson } from './json-list.ts';
import { constraintFlag, mustName } from './select.ts';

export class Edit extends GryphusCommand {
  static override strict = false;
  static override summary = 'Change attributes of jobs.';
  static override description = prose(
    `Values are ClassAd expressions, so strings need quotes. A job that is already at a site runs there as it was submitted.
GridResource moves a job, as \`gryphus move\` does.`,
  );
  static override examples = [
    '<%= config.bin %> edit 12.3 JobPrio 5',
    `<%= config.bin %> edit 12 'JobBatchName="tuesday"' RequestMemory=4096`,
    `<%= config.bin %> edit 12 --constraint 'JobStatus == 1' JobPrio=-1`,
  ];
  static override args = {
    job: word('clusters (12), jobs (12.3) or one user; then NAME VALUE or NAME=VALUE'),
  };
  static override flags = {
    constraint: constraintFlag,
    json: actFlag,
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Edit);
    const words = argv as string[];
    // A number cannot be an attribute's name. A user can only come first, and not together with a constraint.
    const names = words.findIndex(
      (word, i) => !/^\d+(\.\d+)?$/.test(word) && (i > 0 || flags.constraint !== undefined),
    );
    const named = { words: words.splice(0, names === -1 ? words.length : names), constraint: flags.constraint };
    const set = assignments(words);
    if ((names <= 0 && flags.constraint === undefined) || Object.keys(set).length === 0) {
      throw new GryphusError('usage', 'Name a job, an attribute and its value.', {
        suggestions: ['gryphus edit 12.3 JobPrio 5'],
      });
    }
    await this.withGryphus(flags, async (gryphus) => {
      const each: (readonly ActionResult[])[] = [];
      for (const target of mustName(named)) each.push(await gryphus.edit(target, set));
      const results = each.flat();
      const done = results.filter((one) => one.result === 'done').length;
      if (done === 0 || done < results.length) process.exitCode = 1;
      if (flags.json) return void process.stdout.write(actJson(results));
      for (const { id, result, message: what } of results) {
        const stream = result === 'done' ? process.stdout : process.stderr;
        if (result !== 'done' || what !== 'changed') stream.write(`Job ${formatJobId(id)} ${what}\n`);
      }
      for (const name of Object.keys(set)) {
        if (done > 0) process.stdout.write(`Set attribute "${name}" for ${done} matching jobs.\n`);
        else process.stderr.write(`Failed to set attribute "${name}": no job matches.\n`);
      }
    });
  }
}

/** Reads `NAME=VALUE` words and `NAME VALUE` pairs. */
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
        value === undefined ? `'${name}' has no value.` : `'${name}' is not an attribute name.`,
        {
          suggestions: ['Write NAME VALUE or NAME=VALUE.'],
        },
      );
    }
    set[name] = value;
  }
  return set;
}
