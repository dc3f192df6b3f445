import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { Paths } from '../config/paths.ts';
import { maybe, type Read } from '../util/schema.ts';
import { writeWhole } from '../util/private-file.ts';
import { parseStored } from '../util/stored-json.ts';
import { DAG_PROGRESS } from './progress.ts';

/** What remains of a DAG that has ended. */
const DAG_RECORD = z.object({
  exitCode: z.number(),
  /** Absent if the DAG could not be read. */
  progress: maybe(DAG_PROGRESS),
});
export type DagRecord = Read<typeof DAG_RECORD>;

/** The private files of one DAG's manager: its journal while it runs, then a record of how it ended. */
export class JournalPlace {
  readonly journal: string;
  readonly #record: string;

  constructor(paths: Pick<Paths, 'stateDir'>, manager: number) {
    const dir = placeOf(paths);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.journal = join(dir, `${manager}.journal`);
    this.#record = join(dir, `${manager}.end`);
  }

  /** Returns `undefined` if the DAG has not ended or is unknown. */
  ended(): DagRecord | undefined {
    if (!existsSync(this.#record)) return undefined;
    return parseStored(DAG_RECORD, readFileSync(this.#record, 'utf8'), {
      what: `The record of an ended DAG ${this.#record}`,
      remedy: 'Delete it; the exit code of that DAG is not known then.',
    });
  }

  /** The record is on disk when this returns, so the journal is no longer needed. */
  end(record: DagRecord): void {
    writeWhole(this.#record, JSON.stringify(record));
    rmSync(this.journal, { force: true });
  }

  /** The manager has left the queue for good, so the journal will never be replayed. */
  abandon(): void {
    rmSync(this.journal, { force: true });
  }
}

/**
 * Deletes the oldest records of ended DAGs: all but the `most` newest, and any from before `since` (Unix milliseconds).
 */
export function forgetOldRecords(paths: Pick<Paths, 'stateDir'>, most: number, since: number): void {
  const dir = placeOf(paths);
  if (!existsSync(dir)) return;
  const managers = readdirSync(dir).flatMap((name) => (/^\d+\.end$/.test(name) ? [Number.parseInt(name, 10)] : []));
  managers.sort((a, b) => a - b);
  for (const [at, manager] of managers.entries()) {
    const file = join(dir, `${manager}.end`);
    const ended = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (managers.length - at > most || ended < since) rmSync(file, { force: true });
  }
}

function placeOf(paths: Pick<Paths, 'stateDir'>): string {
  return join(paths.stateDir, 'dag');
}
