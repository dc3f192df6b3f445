import { resolve } from 'node:path';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { type JobId, parseJobId } from '../job/ids.ts';
import { firstOf } from '../util/first-of.ts';
import { startTimer } from '../util/long-timer.ts';
import type { FailureGroup, Gryphus, Selections } from '../index.ts';
import { LIFE } from '../job/life.ts';
import { quoted } from '../job/values.ts';
import type { UserLogEvent } from '../user-log/event.ts';
import { GryphusCommand, interruptible, prose, word } from './command.ts';
import { constraintFlag, oneOf, selections, targets } from './select.ts';

export class Wait extends GryphusCommand {
  static override strict = false;
  static override summary = 'Wait until jobs have ended.';
  static override description =
    prose(`Name jobs by id, or by a user log and optionally a job in it, as for condor_wait; a log is read without the
Scheduler. Exit status 0: all jobs exited with status 0; 3: one failed or was removed; 4: one is held (--until settled) and
none failed; 1: the time ran out first. What went wrong is on standard error. With --no-outcome, with --until start and for a
log, as condor_wait has it, 0 says only that the wait is over. By then the files, the user log and the history entry of each
ended job are complete.`);
  static override examples = [
    '<%= config.bin %> wait 12',
    '<%= config.bin %> wait 12.3 13 --timeout 60',
    '<%= config.bin %> wait 12 --until settled --json',
    '<%= config.bin %> wait 12 --until settled || <%= config.bin %> retry 12',
    '<%= config.bin %> wait results/pi.log -num 10 -status',
  ];
  static override args = {
    jobs: word('clusters (12) and jobs (12.3), or a user log and a job of it'),
  };
  static override flags = {
    constraint: constraintFlag,
    timeout: Flags.integer({ aliases: ['wait'], helpValue: '<seconds>', min: 0, summary: 'Give up after this time.' }),
    num: Flags.integer({ helpValue: '<n>', min: 1, summary: 'Return after this many jobs of the log have ended.' }),
    status: Flags.boolean({ summary: 'Print each change of state.' }),
    json: Flags.boolean({ summary: 'A JSON object.', exclusive: ['status', 'echo'] }),
    echo: Flags.boolean({ summary: 'Print the events of the log as they come.' }),
    outcome: Flags.boolean({
      allowNo: true,
      summary: "Let the exit status tell the jobs' outcome, as it does for jobs named by id.",
    }),
    until: Flags.option({
      options: ['end', 'start', 'settled'] as const,
      default: 'end' as const,
      summary: 'What to wait for: end, start, or settled (ended or held).',
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
    const { signal } = interruptible(isLog ? undefined : 'The jobs keep running.');
    if (isLog && flags.outcome) throw new GryphusError('usage', '--outcome: name the jobs by their ids, not by a log.');
    let held = 0;
    let outcome = 0;
    const ended = isLog
      ? await this.#log(words, flags, signal)
      : await this.withGryphus(flags, async (gryphus) => {
          await this.#mustBe(gryphus, words);
          const jobs = oneOf(selections({ words, constraint: flags.constraint }));
          const limit = flags.timeout === undefined ? {} : { timeoutMs: flags.timeout * 1000 };
          const began = Math.floor(Date.now() / 1000);
          const { withProgress } = await import('./show/progress.ts');
          const waiting = () => gryphus.wait({ ...jobs, until: flags.until, signal, ...limit });
          const ended = await withProgress(gryphus, jobs, waiting);
          if (ended && flags.until === 'settled') held = await heldOf(gryphus, jobs);
          if (ended && (flags.outcome ?? flags.until !== 'start')) {
            const { sayFailures } = await import('./say-failures.ts');
            const { constraint } = flags;
            const awaited =
              words.length > 0 || constraint === undefined ? jobs : { constraint: since(constraint, began) };
            outcome = statusOf(await sayFailures(gryphus, awaited));
          }
          return ended;
        }).catch((error: unknown) => {
          if (signal.aborted) return undefined;
          throw error;
        });
    if (ended === undefined || signal.aborted) return;
    process.exitCode = ended ? outcome : 1;
    if (flags.json) return void process.stdout.write(`${JSON.stringify({ done: ended, held })}\n`);
    const done = held > 0 ? `All jobs have ended or are held: ${held} held.` : DONE[flags.until];
    process.stdout.write(`${ended ? done : 'Time expired.'}\n`);
  }

  /** Otherwise a mistyped id would pass for a job that has ended. */
  async #mustBe(gryphus: Gryphus, words: readonly string[]): Promise<void> {
    for (const [i, target] of targets({ words }).entries()) {
      const one = { ...target, limit: 1, attributes: [] };
      const known = await firstOf(gryphus.jobs(one));
      // A cluster without materialized jobs exists too.
      if (!known && (target.clusters === undefined || (await gryphus.clusters(target)).length === 0))
        throw new GryphusError('not-found', `There is no job ${words[i]}, neither in the queue nor in the history.`);
    }
  }

  /**
   * Jobs of the queue that have this log: right after a submit, it may lack them, or not be there at all. None if there is no queue;
   * the log may be another program's.
   */
  async #owed(file: string, flags: LogFlags): Promise<readonly JobId[]> {
    const path = quoted(resolve(file));
    const constraint = `UserLog =?= ${path} || strcat(Iwd, "/", UserLog) =?= ${path}`;
    const ids: JobId[] = [];
    const look = async (gryphus: Gryphus) => {
      for await (const { id } of gryphus.query({ constraint, attributes: [] })) ids.push(id);
    };
    await this.withGryphus(flags, look, false).catch(() => undefined);
    return ids;
  }

  /** `undefined`: already reported, or interrupted. */
  async #log(
    [file = '', job]: readonly string[],
    flags: LogFlags,
    interrupted: AbortSignal,
  ): Promise<boolean | undefined> {
    const { followLog, untilThere } = await import('./follow-log.ts');
    const { LogProgress, statusLine } = await import('./show/log-progress.ts');
    const { printUserLog } = await import('../user-log/text.ts');
    const id = job === undefined ? undefined : (parseJobId(job) ?? { cluster: Number(job) });
    const owed = await this.#owed(file, flags);
    const progress = new LogProgress(id, owed);
    const late = new AbortController();
    const signal = AbortSignal.any([late.signal, interrupted]);
    let timer: NodeJS.Timeout | undefined;
    if (flags.timeout !== undefined)
      startTimer(
        flags.timeout * 1000,
        () => late.abort(),
        (next) => (timer = next),
      );
    const say = (event: UserLogEvent) => {
      if (flags.echo) process.stdout.write(printUserLog(event));
      const line = flags.status ? statusLine(event) : undefined;
      if (line !== undefined) process.stdout.write(`${line}\n`);
    };
    try {
      const enough = () => flags.num === undefined && progress.allDone;
      if (owed.length > 0) await untilThere(file, signal);
      if (signal.aborted) return interrupted.aborted ? undefined : false;
      const events = followLog(file, true, signal, enough);
      for await (const event of events) {
        if (!progress.concerns(event)) continue;
        progress.take(event);
        say(event);
        if (flags.num !== undefined && progress.ended >= flags.num) {
          if (flags.json) return true;
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

interface LogFlags {
  readonly home?: string | undefined;
  readonly timeout?: number | undefined;
  readonly num?: number | undefined;
  readonly status: boolean;
  readonly echo: boolean;
  readonly json: boolean;
}

/** Of all jobs, the history has more than those that were waited for: those that ended before. */
function since(constraint: string, began: number): string {
  return `(${constraint}) && (JobStatus == 5 || EnteredCurrentStatus >= ${began})`;
}

/** The exit status that tells the outcome. */
function statusOf(groups: readonly FailureGroup[]): number {
  if (groups.some(({ outcome }) => outcome !== 'held')) return 3;
  return groups.length > 0 ? 4 : 0;
}

const DONE = { end: 'All jobs done.', settled: 'All jobs done.', start: 'All jobs have started.' } as const;

async function heldOf(gryphus: Gryphus, jobs: Selections): Promise<number> {
  let held = 0;
  for await (const { state } of gryphus.query({ ...jobs, attributes: [] })) if (LIFE[state].shows === 'held') held++;
  return held;
}
