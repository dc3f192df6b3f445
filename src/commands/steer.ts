import { GryphusError } from '../errors.ts';
import type { ActionResult } from '../index.ts';
import { formatJobId } from '../job/ids.ts';
import { GryphusCommand, prose, word } from './command.ts';
import { actFlag, actJson } from './json-list.ts';
import { targets } from './select.ts';

const FLAGS = { json: actFlag };
const ARGS = { jobs: word('clusters (12), jobs (12.3) or users') };

/** vacate, suspend and continue are one command with three words. */
abstract class Steer extends GryphusCommand {
  protected abstract readonly how: 'vacate' | 'suspend' | 'continue';

  protected async steer(words: readonly string[], flags: { home?: string | undefined; json: boolean }): Promise<void> {
    const named = targets({ words, constraint: undefined, all: false });
    if (named.length === 0) throw new GryphusError('usage', 'You did not specify any jobs.');
    await this.withGryphus(flags, async (gryphus) => {
      const all: ActionResult[] = [];
      for (const [i, target] of named.entries()) {
        const results = await gryphus.steer(this.how, target);
        if (results.length === 0) process.stderr.write(`There is no job ${words[i]} in the queue.\n`);
        if (results.length === 0 || results.some(({ result }) => result !== 'done')) process.exitCode = 1;
        all.push(...results);
      }
      if (flags.json) return void process.stdout.write(actJson(all));
      for (const { id, result, words: said } of all)
        (result === 'done' ? process.stdout : process.stderr).write(`Job ${formatJobId(id)} ${said}\n`);
    });
  }
}

export class Vacate extends Steer {
  static override strict = false;
  static override summary = 'Move jobs of the pool away from where they run; they wait for another slot.';
  static override description = prose('Exit status 1 where one does not run in the pool.');
  static override examples = ['<%= config.bin %> vacate 12.3', '<%= config.bin %> vacate 12 13.4'];
  static override args = ARGS;
  static override flags = FLAGS;
  protected readonly how = 'vacate';

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Vacate);
    await this.steer(argv as string[], flags);
  }
}

export class Suspend extends Steer {
  static override strict = false;
  static override summary = 'Stop jobs of the pool where they are, until `continue`.';
  static override description = prose('Exit status 1 where one does not run in the pool.');
  static override examples = ['<%= config.bin %> suspend 12.3', '<%= config.bin %> suspend 12 13.4'];
  static override args = ARGS;
  static override flags = FLAGS;
  protected readonly how = 'suspend';

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Suspend);
    await this.steer(argv as string[], flags);
  }
}

export class Continue extends Steer {
  static override strict = false;
  static override summary = 'Let suspended jobs of the pool run on.';
  static override description = prose('Exit status 1 where one is not in the pool.');
  static override examples = ['<%= config.bin %> continue 12.3', '<%= config.bin %> continue 12 13.4'];
  static override args = ARGS;
  static override flags = FLAGS;
  protected readonly how = 'continue';

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Continue);
    await this.steer(argv as string[], flags);
  }
}
