import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { JobId } from '../job/ids.ts';
import { OUTCOME_ATTRIBUTES, outcomeOf, outcomeText, wentWell } from '../job/outcome.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import { oneLine } from '../util/plain-text.ts';
import type { JobView } from './types.ts';

/** Jobs that failed, or are held, in the same way. */
export interface FailureGroup {
  /** `exit status 3`, `signal 9`, `removed`, `held`. */
  readonly outcome: string;
  /** Why they were removed or are held. */
  readonly reason?: string;
  /** The last lines of standard error, of one of them. */
  readonly lines: readonly string[];
  readonly count: number;
  /** The first of them. */
  readonly jobs: readonly JobId[];
}

/** What `groupFailures` reads of a job. */
export const FAILURE_ATTRIBUTES = [
  ...OUTCOME_ATTRIBUTES,
  'Iwd',
  'Err',
  'HoldReason',
  'HoldReasonCode',
  'RemoveReason',
] as const;

const MOST_LINES = 4;
/** Bytes from the end of a file that are read. */
const END = 4096;
/** Of how many jobs the standard error is read; others are grouped by their outcome alone. */
const MOST_READ = 500;
const MOST_NAMED = 5;

/** Those of the jobs that failed or are held, the most frequent failure first. Numbers within messages may differ. */
export async function groupFailures(jobs: AsyncIterable<JobView>): Promise<FailureGroup[]> {
  const groups = new Map<string, { outcome: string; reason?: string; lines: string[]; count: number; jobs: JobId[] }>();
  let read = 0;
  for await (const { id, state, ad } of jobs) {
    const source = { get: (name: string) => ad[name] };
    const outcome = outcomeOf(state, source);
    if (wentWell(outcome) || outcome.is === 'open') continue;
    const ran = outcome.is !== 'held' && outcome.is !== 'removed';
    const lines = ran && read++ < MOST_READ ? await lastLines(source) : [];
    const reason = ran ? undefined : reasonOf(source, outcome.is === 'held');
    const said = outcomeText(outcome);
    const key = [said, like(reason ?? ''), like(lines.at(-1) ?? '')].join('\0');
    const group = groups.get(key);
    if (!group) {
      groups.set(key, { outcome: said, ...(reason === undefined ? {} : { reason }), lines, count: 1, jobs: [id] });
      continue;
    }
    group.count++;
    group.jobs = [...group.jobs, id].sort((a, b) => a.cluster - b.cluster || a.proc - b.proc).slice(0, MOST_NAMED);
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

function reasonOf(ad: TextSource, held: boolean): string | undefined {
  const reason = readString(ad, held ? 'HoldReason' : 'RemoveReason');
  if (reason === undefined || reason === '') return undefined;
  const code = held ? readNumber(ad, 'HoldReasonCode') : undefined;
  return `${oneLine(reason)}${code === undefined ? '' : ` (code ${code})`}`;
}

/** Messages that differ only in numbers (ids, lines, times) are alike. */
function like(message: string): string {
  return message.replaceAll(/\d+/g, '#');
}

/** The last lines that the job wrote to standard error, without empty ones; none if there is no such file here. */
export async function lastLines(ad: TextSource): Promise<string[]> {
  const path = readString(ad, 'Err');
  if (path === undefined || path === '' || path === '/dev/null') return [];
  const file = await open(resolve(readString(ad, 'Iwd') ?? '/', path), 'r').catch(() => undefined);
  if (!file) return [];
  try {
    const stat = await file.stat();
    // Reading a device or a pipe could wait for ever.
    if (!stat.isFile()) return [];
    const from = Math.max(0, stat.size - END);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(END), 0, END, from);
    const lines = buffer.toString('utf8', 0, bytesRead).split('\n').map(oneLine);
    // The first is probably not whole.
    return (from > 0 ? lines.slice(1) : lines).filter((line) => line !== '').slice(-MOST_LINES);
  } catch {
    return [];
  } finally {
    await file.close();
  }
}
