import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { parseJobId } from '../job/ids.ts';
import type { UserLogEvent } from '../index.ts';
import { GryphusCommand, Out, interruptible, needed, prose } from './command.ts';
import { firstOf } from '../util/first-of.ts';
import { JsonList } from './json-list.ts';
import { stringOf } from './show/ad.ts';
import type { WantedEnds } from './show/log-progress.ts';

interface Found {
  readonly file: string;
  readonly wanted: WantedEnds;
  /** Events of jobs without a log file. */
  readonly remembered?: readonly UserLogEvent[];
}

export class Log extends GryphusCommand {
  static override summary = "Print the events of a job's user log.";
  static override description =
    prose(`JOB is a cluster (12), a job (12.3), or the user log's own file. For a job without a user log, prints what its ad records:
its last run, and how it ended or why it is held.`);
  static override examples = [
    '<%= config.bin %> log 12.3',
    '<%= config.bin %> log 12 --json',
    '<%= config.bin %> log -f results/pi.log',
    '<%= config.bin %> log -f 12 --jsonl',
  ];
  static override args = { job: needed('a cluster, a job, or a log file') };
  static override flags = {
    follow: Flags.boolean({ char: 'f', summary: 'Follow the log until Ctrl-C or until the last job has ended.' }),
    json: Flags.boolean({ summary: 'ClassAds of the events as a JSON array.', exclusive: ['xml', 'jsonl'] }),
    jsonl: Flags.boolean({ summary: 'ClassAds of the events as JSON, one per line.', exclusive: ['xml'] }),
    xml: Flags.boolean({ summary: 'ClassAds of the events as XML.' }),
    legacy: Flags.boolean({ summary: 'Dates as 11/20 23:39:02.' }),
    utc: Flags.boolean({ summary: 'Times in UTC.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Log);
    const { file, wanted, remembered } = await this.#find(args.job, flags);
    const { followLog } = await import('./follow-log.ts');
    const { LogProgress } = await import('./show/log-progress.ts');
    const { printUserLog } = await import('../user-log/text.ts');
    const { userLogJson, userLogJsonLine, userLogXml } = await import('../user-log/as-ad.ts');
    const style = { legacy: flags.legacy, utc: flags.utc };
    const print = flags.xml ? userLogXml : printUserLog;
    const { signal } = interruptible();
    const progress = new LogProgress(wanted);
    const out = new Out();
    const list = flags.json || flags.jsonl ? new JsonList(out, flags.jsonl) : undefined;
    const events = remembered ?? followLog(file, flags.follow, signal, () => progress.allDone);
    for await (const event of events) {
      if (!progress.concerns(event)) continue;
      progress.take(event);
      if (list) list.add(flags.json ? userLogJson(event, style).trimEnd() : userLogJsonLine(event, style));
      else out.text(print(event, style));
      await (flags.follow ? out.flush() : out.breathe());
    }
    list?.end();
    await out.flush();
  }

  async #find(job: string, flags: { readonly home?: string | undefined; readonly follow: boolean }): Promise<Found> {
    const id = parseJobId(job);
    const wanted: WantedEnds = id ?? { cluster: Number(job) };
    if (!/^\d+(\.\d+)?$/.test(job)) return { file: job, wanted: {} };
    const whole = id ? { ids: [id] } : { clusters: [Number(job)] };
    const selection = { ...whole, limit: 1, attributes: ['UserLog', 'Iwd'] };
    const found = await this.withGryphus(flags, async (gryphus) => {
      const first = await firstOf(gryphus.jobs(selection));
      if (!first) return undefined;
      const logged = stringOf(first.ad, 'UserLog') !== undefined;
      return { ...first, remembered: logged ? undefined : await gryphus.jobEvents(whole) };
    });
    if (!found) throw new GryphusError('not-found', `There is no job ${job}, neither in the queue nor in the history.`);
    const log = stringOf(found.ad, 'UserLog');
    if (found.remembered && !flags.follow) return { file: '', wanted, remembered: found.remembered };
    if (log === undefined) {
      throw new GryphusError('not-found', `Job ${job} has no user log to follow.`, {
        suggestions: ['Jobs have one when their submit file says: log = FILE'],
      });
    }
    const file = resolve(stringOf(found.ad, 'Iwd') ?? '.', log);
    if (!existsSync(file)) throw new GryphusError('input-missing', `The user log of job ${job} is gone: ${file}.`);
    return { file, wanted };
  }
}
