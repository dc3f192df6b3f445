import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../util/private-file.ts';
import { storedOr } from '../util/stored-json.ts';
import type { History } from './history-types.ts';
import { addRow, dayOf, emptyDay, rowOf, USAGE_DAY, type UsageDay, type UsageRow } from './usage-day.ts';

/** Days that are kept. */
const MOST_DAYS = 400;
const NAME = /^(\d{4}-\d\d-\d\d)\.json$/;

/** One small file for each day with what ended jobs used. The Scheduler writes, anybody reads. */
export class UsageFiles {
  readonly #dir: string;

  constructor(stateDir: string) {
    this.#dir = join(stateDir, 'usage');
  }

  /** Oldest first. */
  days(): string[] {
    if (!existsSync(this.#dir)) return [];
    const found = readdirSync(this.#dir).flatMap((name) => NAME.exec(name)?.[1] ?? []);
    return found.sort();
  }

  /** An empty day if there is no file, or a damaged one. */
  read(day: string): UsageDay {
    const path = this.#path(day);
    return (existsSync(path) ? storedOr(USAGE_DAY, readFileSync(path, 'utf8')) : undefined) ?? emptyDay(day);
  }

  write(day: UsageDay): void {
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    writeWhole(this.#path(day.day), JSON.stringify(day));
  }

  prune(): void {
    for (const day of this.days().slice(0, -MOST_DAYS)) rmSync(this.#path(day), { force: true });
  }

  #path(day: string): string {
    return join(this.#dir, `${day}.json`);
  }
}

/**
 * Adds the jobs that left the queue since the files were written, up to `until` (Unix seconds); returns the days that
 * have changed, oldest first. A day's file says up to when it is complete, so that no job is counted twice when the
 * process dies between two files.
 */
export async function newUsage(files: UsageFiles, history: Pick<History, 'read'>, until: number): Promise<UsageDay[]> {
  const newest = files.days().at(-1);
  const from = newest === undefined ? 0 : files.read(newest).upTo;
  const days = new Map<string, { readonly day: UsageDay; readonly before: number; readonly rows: UsageRow[] }>();
  for await (const job of history.read()) {
    if (job.retired > until) continue;
    // Newest first.
    if (job.retired <= from) break;
    const name = dayOf(job.retired);
    let found = days.get(name);
    if (!found) {
      const day = files.read(name);
      const rows = [...day.rows];
      found = { day: { ...day, rows }, before: day.upTo, rows };
      days.set(name, found);
    }
    const row = rowOf(job);
    if (row && job.retired > found.before) addRow(found.rows, row);
  }
  // The days after it may not be written any more.
  const changed = [...days.values()].map(({ day }) => ({ ...day, upTo: Math.min(until, lastSecondOf(day.day)) }));
  return changed.sort((a, b) => (a.day < b.day ? -1 : 1));
}

function lastSecondOf(day: string): number {
  return Date.parse(`${day}T23:59:59Z`) / 1000;
}
