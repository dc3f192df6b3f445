import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type * as z from 'zod';
import { GryphusError } from '../errors.ts';
import type { JobId, SeenJobView, UserLogEvent } from '../index.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import { parseUserLog, printUserLog } from '../user-log/text.ts';
import { firstOf } from '../util/first-of.ts';
import { attemptsOf } from './attempts.ts';
import { nameOf } from './job-table.ts';
import { rowOf } from './row.ts';
import { shownRow } from './shown-row.ts';
import type { FILE, LOG, ONE_JOB } from './schemas.ts';
import type { Web } from './web.ts';

/** The end of a user log that is read; bytes. */
const LOG_END = 2 * 2 ** 20;
/** A longer value of the ad is cut; characters. */
const LONGEST = 20_000;
const MOST_FILES = 200;
/** These may hold secrets. */
const HIDDEN = /^(environment|env|.*(password|secret|token).*)$/i;

export async function findJob(web: Web, id: JobId): Promise<SeenJobView> {
  const found = await firstOf(web.gryphus.jobs({ ids: [id], limit: 1 }));
  if (found) return found;
  throw new GryphusError('not-found', `There is no job ${nameOf(id)}, neither in the queue nor in the history.`);
}

export async function oneJob(web: Web, id: JobId): Promise<z.infer<typeof ONE_JOB>> {
  const found = await findJob(web, id);
  const source = { get: (name: string) => found.ad[name] };
  const events = await eventsOf(web, id, source);
  return {
    row: shownRow(rowOf(found)),
    in: found.in,
    attempt: readNumber(source, 'GryphusAttempt') ?? 0,
    directory: readString(source, 'Iwd') ?? '',
    life: events.map((event) => ({ at: event.at, type: event.type, text: wordsOf(event) })),
    attempts: attemptsOf(events),
    files: await filesOf(source),
    memory: events.flatMap((event) =>
      event.type === 'image-size' && event.memoryMb !== undefined ? [{ at: event.at, mb: event.memoryMb }] : [],
    ),
    ad: Object.entries(found.ad)
      .filter(([name]) => !HIDDEN.test(name))
      .map(([name, text]): [string, string] => [name, text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
    ...(logOf(source) === undefined ? {} : { log: logOf(source) }),
  };
}

/** The end of a job's user log as it stands there. */
export async function userLog(web: Web, id: JobId): Promise<z.infer<typeof LOG>> {
  const { ad } = await findJob(web, id);
  const path = logOf({ get: (name) => ad[name] });
  if (path === undefined) return { text: '', cut: false };
  return { path, ...(await endOf(path)) };
}

function logOf(source: TextSource): string | undefined {
  const log = readString(source, 'UserLog');
  return log === undefined || log === '' ? undefined : resolve(readString(source, 'Iwd') ?? '/', log);
}

/** From its user log, or what queue and history still know. */
async function eventsOf(web: Web, id: JobId, source: TextSource): Promise<readonly UserLogEvent[]> {
  const path = logOf(source);
  if (path !== undefined) {
    const { text } = await endOf(path);
    const mine = parseUserLog(text).events.filter(({ cluster, proc }) => cluster === id.cluster && proc === id.proc);
    if (mine.length > 0) return mine;
  }
  return web.gryphus.jobEvents({ ids: [id] });
}

async function endOf(path: string): Promise<{ readonly text: string; readonly cut: boolean }> {
  const file = await open(path, 'r').catch(() => undefined);
  if (!file) return { text: '', cut: false };
  try {
    const found = await file.stat();
    // Reading a device or a pipe could wait for ever.
    if (!found.isFile()) return { text: '', cut: false };
    const from = Math.max(0, found.size - LOG_END);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(LOG_END, found.size)), 0, undefined, from);
    const text = buffer.toString('utf8', 0, bytesRead);
    const whole = text.indexOf('...\n') + 4;
    return { text: from > 0 && whole > 3 ? text.slice(whole) : text, cut: from > 0 };
  } finally {
    await file.close();
  }
}

/** The event as its log prints it, without number and job. */
function wordsOf(event: UserLogEvent): string {
  const [first = '', ...more] = printUserLog(event).trimEnd().split('\n');
  const words = first.replace(/^\d{3} \(\S+\) \S+ \S+ /, '');
  return [words, ...more.filter((line) => line !== '...').slice(0, 3)].map((line) => line.trim()).join('\n');
}

async function filesOf(source: TextSource): Promise<z.infer<typeof FILE>[]> {
  const directory = readString(source, 'Iwd') ?? '/';
  const list = (name: string) => (readString(source, name) ?? '').split(',').map((one) => one.trim());
  const named = [
    ['program', [readString(source, 'Cmd') ?? '']],
    ['standard input', [readString(source, 'In') ?? '']],
    ['input', list('TransferInput')],
    ['standard output', [readString(source, 'Out') ?? '']],
    ['standard error', [readString(source, 'Err') ?? '']],
    ['output', list('TransferOutput')],
    ['user log', [readString(source, 'UserLog') ?? '']],
  ] as const;
  const wanted = named.flatMap(([role, names]) =>
    names.filter((name) => name !== '' && name !== '/dev/null').map((name) => ({ role, name })),
  );
  return Promise.all(
    wanted.slice(0, MOST_FILES).map(async ({ role, name }) => {
      if (/^\w+:\/\//.test(name)) return { role, name, missing: false };
      const found = await stat(resolve(directory, name)).catch(() => undefined);
      return { role, name, missing: !found, ...(found?.isFile() ? { bytes: found.size } : {}) };
    }),
  );
}
