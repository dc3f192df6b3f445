import * as z from 'zod';
import type { CredentialNews } from '../credentials/watch/model.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { oneLine, spanText, timeText } from '../util/plain-text.ts';

/** One mail, or one alarm of any kind, in plain text; as it is kept until it is sent. */
export const MESSAGE = z
  .object({
    /** Permanently identifies its subject: a message whose key was sent is not sent again. */
    key: z.string(),
    kind: z.enum(['job', 'problem', 'credential', 'test']),
    /** Not delayed for a digest. */
    urgent: z.boolean(),
    /** One line. */
    subject: z.string(),
    body: z.string(),
    /** In a digest, messages that say the same (`says`) of several jobs (`what`) share a line. */
    alike: z.object({ what: z.string(), says: z.string() }).readonly().exactOptional(),
    /** It reports that this job is held, so it is not sent once the job is not. */
    held: z.string().exactOptional(),
  })
  .readonly();

export type Message = z.infer<typeof MESSAGE>;

export interface EndedJob {
  readonly id: JobId;
  /** Grows with each run, so that a second end of the same job is a new message. */
  readonly attempt: number;
  /** The command line as the user knows it. */
  readonly command: string;
  readonly site: string;
  readonly how:
    | { readonly kind: 'exited'; readonly code: number }
    | { readonly kind: 'signaled'; readonly signal: number };
  /** Unix seconds. */
  readonly submittedAt: number;
  readonly startedAt?: number;
  readonly endedAt: number;
  readonly cpuSeconds?: number;
  /** Further attributes that the job wants reported (`email_attributes`): name and expression text. */
  readonly attributes?: readonly (readonly [name: string, text: string])[];
}

/** HTCondor's `notification = complete | always | error`. */
export function jobEnded(job: EndedJob): Message {
  const id = formatJobId(job.id);
  const end =
    job.how.kind === 'exited' ? `ended with status ${job.how.code}` : `was killed by signal ${job.how.signal}`;
  const lines = [
    `Job ${id} ${end}.`,
    '',
    `Command:   ${oneLine(job.command)}`,
    `Site:      ${oneLine(job.site)}`,
    `Submitted: ${timeText(job.submittedAt)}`,
    ...(job.startedAt === undefined ? [] : [`Started:   ${timeText(job.startedAt)}`]),
    `Ended:     ${timeText(job.endedAt)}`,
    ...(job.startedAt === undefined ? [] : [`Wall time: ${spanText(job.endedAt - job.startedAt)}`]),
    ...(job.cpuSeconds === undefined ? [] : [`CPU time:  ${spanText(job.cpuSeconds)}`]),
    ...(job.attributes ?? []).map(([name, text]) => `${name} = ${oneLine(text)}`),
    ...typeThis([`gryphus history ${id}`]),
  ];
  const ended = message('job', `job-ended ${id} ${job.attempt}`, `Job ${id} ${end}`, lines);
  // What a job wants reported is its own.
  if (job.attributes !== undefined && job.attributes.length > 0) return ended;
  const ends = job.how.kind === 'exited' ? end : `were killed by signal ${job.how.signal}`;
  return { ...ended, alike: { what: id, says: `jobs ${ends}` } };
}

export interface HeldJob {
  readonly id: JobId;
  /** Unix seconds; a job that is held again gets a new message. */
  readonly since: number;
  readonly command: string;
  readonly code: number;
  readonly reason: string;
  readonly suggestions: readonly string[];
}

export function jobHeld(job: HeldJob): Message {
  const id = formatJobId(job.id);
  const held = message('job', `job-held ${id} ${job.since}`, `Job ${id} is held: ${job.reason}`, [
    `Job ${id} has been held since ${timeText(job.since)} and will not run until it is released.`,
    '',
    `Reason:  ${oneLine(job.reason)} (code ${job.code})`,
    `Command: ${oneLine(job.command)}`,
    ...job.suggestions.map((one) => `Help:    ${oneLine(one)}`),
    ...typeThis([`gryphus why ${id}`, `gryphus release ${id}`]),
  ]);
  return { ...held, held: id, alike: { what: id, says: `jobs are held: ${oneLine(job.reason)}` } };
}

export interface SiteProblem {
  readonly site: string;
  /** Unix seconds. */
  readonly since: number;
  readonly message: string;
  readonly jobs: number;
  readonly suggestions: readonly string[];
}

export function siteProblem(problem: SiteProblem): Message {
  const site = oneLine(problem.site);
  return message('problem', `site ${site} ${problem.since}`, `Site ${site} needs you: ${problem.message}`, [
    `Since ${timeText(problem.since)}, site ${site} has been unusable: ${oneLine(problem.message)}`,
    `${count(problem.jobs, 'job')} of yours ${problem.jobs === 1 ? 'waits' : 'wait'} for it; none is lost.`,
    ...problem.suggestions.map((one) => `Help: ${oneLine(one)}`),
    ...typeThis([`gryphus site test ${site}`]),
  ]);
}

export interface OwedUserLogs {
  readonly path: string;
  /** Unix seconds. */
  readonly since: number;
  readonly error: string;
  /** How many logs have the same problem. */
  readonly count: number;
}

export function userLogsOwed({ path, since, error, count: all }: OwedUserLogs): Message {
  return message('problem', `user-log ${path} ${since}`, `A user log cannot be written: ${path}`, [
    `Since ${timeText(since)}, the user log ${oneLine(path)} could not be written: ${oneLine(error)}`,
    ...(all > 1 ? [`${count(all - 1, 'other log')} cannot be written either.`] : []),
    'Its events are kept, and written as soon as possible; the jobs keep running.',
    ...typeThis(['gryphus status']),
  ]);
}

/** A report of the watch over credentials. */
export function credentialNews(news: CredentialNews): Message {
  const who = `The ${news.what} '${oneLine(news.name)}'`;
  const jobs = count(news.jobs.length, 'job');
  const { subject, first } = headline(news, who, jobs);
  const ids = news.jobs.slice(0, 20).map(formatJobId).join(' ');
  const more = news.jobs.length > 20 ? ` and ${news.jobs.length - 20} more` : '';
  return {
    ...message('credential', `credential ${news.key}`, subject, [
      ...first,
      ...(news.problem === undefined ? [] : [oneLine(news.problem)]),
      '',
      `Jobs:  ${news.jobs.length === 0 ? 'none' : ids + more}`,
      `Sites: ${news.sites.map(oneLine).join(' ') || 'none'}`,
      ...(news.news === 'fresh' ? [] : typeThis(news.type)),
    ]),
    urgent: true,
  };
}

interface Headline {
  readonly subject: string;
  readonly first: readonly string[];
}

function headline(news: CredentialNews, who: string, jobs: string): Headline {
  if (!news.holds && (news.news === 'ended' || news.news === 'broken')) {
    return {
      subject: `${who} cannot renew others any more`,
      first: [`${who} can no longer renew others: it has reached the limit.`],
    };
  }
  const until = news.end === undefined ? '' : `, at ${timeText(news.end)}`;
  const left = news.end === undefined ? 'soon' : `in ${spanText(news.end - news.now)}`;
  switch (news.news) {
    case 'ending':
      return {
        subject: `${who} ends ${left}`,
        first: [
          `${who} ends ${left}${until}.`,
          `${jobs} need it. What has not started by then will be held, not lost.`,
        ],
      };
    case 'ended':
      return {
        subject: `${who} has ended; ${jobs} held`,
        first: [
          `${who} has ended${until}.`,
          'Jobs that need it and are not at their site yet are held. Jobs running at a site continue.',
          'They are released automatically once it is renewed.',
        ],
      };
    case 'broken':
      return {
        subject: `${who} cannot be used; ${jobs} held`,
        first: [
          `${who} cannot be used.`,
          'Jobs that need it are held, and released automatically when it can be used again.',
        ],
      };
    case 'renewal-failing':
      return {
        subject: `${who} could not be renewed; it ends ${left}`,
        first: [`${who} could not be renewed so far; it ends ${left}${until}. It is retried automatically.`],
      };
    case 'fresh':
      return {
        subject: `${who} is fresh again`,
        first: [
          `${who} is fresh again${news.end === undefined ? '' : `, until ${timeText(news.end)}`}.`,
          'The jobs that were held for it are released, and the copies at the sites are refreshed.',
        ],
      };
  }
}

export function testMessage(host: string, now: number): Message {
  return {
    ...message('test', `test ${now}`, `Test alarm from ${host}`, [
      `This is the test that you asked for at ${timeText(now)}, from ${oneLine(host)}.`,
      'Alarms about credentials, sites and jobs reach you here.',
    ]),
    urgent: true,
  };
}

function message(kind: Message['kind'], key: string, subject: string, lines: readonly string[]): Message {
  const short = oneLine(subject);
  return {
    key,
    kind,
    urgent: false,
    subject: `[Gryphus] ${short.length > 150 ? `${short.slice(0, 149)}…` : short}`,
    body: `${lines.join('\n')}\n`,
  };
}

function typeThis(commands: readonly string[]): readonly string[] {
  return commands.length === 0 ? [] : ['', 'Type:', ...commands.map((one) => `    ${oneLine(one)}`)];
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}
