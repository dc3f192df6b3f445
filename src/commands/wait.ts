import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { parseJobId } from '../job/ids.ts';
import type { Gryphus } from '../index.ts';
import type { UserLogEvent } from '../job/user-log.ts';
import { GryphusCommand, interruptible, prose, word } from './command.ts';
import { selections, targets } from './select.ts';

export class Wait extends GryphusCommand {
  static override strict = false;
  static override summary = 'Wait until jobs have ended.';
  static override description =
    prose(`Jobs are named by id, or by a user log and perhaps a job in it, as condor_wait takes them; a log is read without the
Scheduler. Exit status 0 when the jobs have ended, 1 when the time ran out first.`);
  static override examples = [
    '<%= config.bin %> wait 12',
    '<%= config.bin %> wait 12.3 13 --timeout 60',
    '<%= config.bin %> wait results/pi.log -num 10 -status',
  ];
  static override args = {
    jobs: word('clusters (12) and jobs (12.3), or a user log and a job of it'),
  };
  static override flags = {
    constraint: Flags.string({
      char: 'c',
      helpValue: '<expression>',
      summary: 'Jobs for which this ClassAd expression is true.',
    }),
    timeout: Flags.integer({ aliases: ['wait'], helpValue: '<seconds>', min: 0, summary: 'Wait no longer.' }),
    num: Flags.integer({ helpValue: '<n>', min: 1, summary: 'Until so many jobs of the log have ended.' }),
    status: Flags.boolean({ summary: 'Say what happens, from the log.' }),
    echo: Flags.boolean({ summary: 'Print the events of the log as they come.' }),
    until: Flags.option({
      options: ['end', 'start', 'settled'] as const,
      default: 'end' as const,
      summary: 'Until the jobs have ended, have started, or have ended or are held.',
    })(),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Wait);
    const words = argv as string[];
    if (words.length === 0 && flags.constraint === undefined) {
      throw new GryphusError('usage', 'Name the jobs to wait for.', {
        suggestions: ['gryphus wait 12.3', 'gryphus wait sweep.log'],
      });
    }
    const isLog = words[0] !== undefined && !/^\d+(\.\d+)?$/.test(words[0]);
    const { signal } = interruptible(isLog ? undefined : 'The jobs go on.');
    const ended = isLog
      ? await this.#log(words, flags, signal)
      : await this.withGryphus(flags, async (gryphus) => {
          const [selection = {}] = selections({ words, constraint: flags.constraint });
          await this.#mustBe(gryphus, words);
          return gryphus.wait({
            ...selection,
            until: flags.until,
            signal,
            ...(flags.timeout === undefined ? {} : { timeoutMs: flags.timeout * 1000 }),
          });
        }).catch((error: unknown) => {
          if (signal.aborted) return undefined;
          throw error;
        });
    if (ended === undefined || signal.aborted) return;
    process.stdout.write(ended ? 'All jobs done.\n' : 'Time expired.\n');
    if (!ended) process.exitCode = 1;
  }

  /** `undefined`: said already, or interrupted. */
  /** A mistyped id would else be taken for a job that has ended. */
  async #mustBe(gryphus: Gryphus, words: readonly string[]): Promise<void> {
    for (const [i, target] of targets({ words }).entries()) {
      const one = { ...target, limit: 1, attributes: [] };
      const { done: away } = await gryphus.query(one).next();
      if (!away || (await gryphus.clusters(target)).some((cluster) => target.clusters?.includes(cluster.cluster)))
        continue;
      const { done: never } = await gryphus.history(one).next();
      if (never)
        throw new GryphusError('not-found', `There is no job ${words[i]}, neither in the queue nor in the history.`);
    }
  }

  async #log(
    [file = '', job]: readonly string[],
    flags: { timeout?: number | undefined; num?: number | undefined; status: boolean; echo: boolean },
    interrupted: AbortSignal,
  ): Promise<boolean | undefined> {
    const { followLog } = await import('./follow-log.ts');
    const { LogProgress, statusLine } = await import('./show/log-progress.ts');
    const { printUserLog } = await import('../job/user-log-text.ts');
    const id = job === undefined ? undefined : (parseJobId(job) ?? { cluster: Number(job) });
    const progress = new LogProgress(id);
    const late = new AbortController();
    const timer = flags.timeout === undefined ? undefined : setTimeout(() => late.abort(), flags.timeout * 1000);
    const say = (event: UserLogEvent) => {
      if (flags.echo) process.stdout.write(printUserLog(event));
      const line = flags.status ? statusLine(event) : undefined;
      if (line !== undefined) process.stdout.write(`${line}\n`);
    };
    try {
      const enough = () => flags.num === undefined && progress.allDone;
      const events = followLog(file, true, AbortSignal.any([late.signal, interrupted]), enough);
      for await (const event of events) {
        if (!progress.concerns(event)) continue;
        progress.take(event);
        say(event);
        if (flags.num !== undefined && progress.ended >= flags.num) {
          process.stdout.write(`Specified number of jobs (${flags.num}) done.\n`);
          return undefined;
        }
      }
      return interrupted.aborted ? undefined : progress.allDone;
    } finally {
      clearTimeout(timer);
    }
  }
}
