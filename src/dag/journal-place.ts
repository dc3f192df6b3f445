import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { writeWhole } from '../util/private-file.ts';
import type { DagProgress } from './progress.ts';
import type { DagOrder } from './words.ts';

/** What is left of a DAG that has ended. */
export interface DagRecord {
  readonly exitCode: number;
  /** Absent where the DAG could not be read. */
  readonly progress?: DagProgress;
  readonly order: DagOrder;
}

/** The private files of one DAG's manager: its journal while it runs, a record of its end after that. */
export class JournalPlace {
  readonly journal: string;
  readonly #record: string;

  constructor(paths: Paths, manager: number) {
    const dir = join(paths.stateDir, 'dag');
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.journal = join(dir, `${manager}.journal`);
    this.#record = join(dir, `${manager}.end`);
  }

  /** `undefined` where the DAG has not ended, or is not known. */
  ended(): DagRecord | undefined {
    if (!existsSync(this.#record)) return undefined;
    return JSON.parse(readFileSync(this.#record, 'utf8')) as DagRecord;
  }

  /** On disk when it returns; the journal is of no use any more. */
  end(record: DagRecord): void {
    writeWhole(this.#record, JSON.stringify(record));
    rmSync(this.journal, { force: true });
  }
}
