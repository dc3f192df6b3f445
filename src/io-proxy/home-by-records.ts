import { closeSync, openSync, writeSync } from 'node:fs';
import { access, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AttemptKey } from '../job/ids.ts';
import { CHIRP_ERROR, type HomeAnswer, homeReply, readRecord, writeRecord } from '../site/chirp.ts';
import type { Question } from './job-proxy.ts';

/** An answer is looked for after these times, milliseconds, the last of them again and again. */
const LOOK_MS = [2, 5, 10, 10, 20, 20, 50, 50, 100, 100, 200] as const;
/** After so many looks, it is made sure that the record is still there. */
const SURE = 50;

export interface HomeByRecordsOptions {
  /** The agent's directory at the site. */
  readonly root: string;
  readonly key: AttemptKey;
  /** Whether it is too late to wait for answers. */
  readonly isLate: () => boolean;
}

/**
 * The home of a job at a site where only the JobManager has a connection to it: requests are records in the agent's directory
 * there, which it carries home, and brings the answers back. A record stays until it is answered, whoever dies meanwhile.
 */
export class HomeByRecords {
  readonly #options: HomeByRecordsOptions;
  readonly #asking: string;
  readonly #answers: string;

  constructor(options: HomeByRecordsOptions) {
    this.#options = options;
    this.#asking = join(options.root, 'asking');
    this.#answers = join(options.root, 'jobs', options.key, 'answers');
  }

  async ask(question: Question, bytes?: Uint8Array, offline: number = CHIRP_ERROR.offline): Promise<HomeAnswer> {
    const { key, isLate } = this.#options;
    // Whether an earlier process at home has done it is not known here, so home looks in any case.
    const record = writeRecord({ key, request: { ...question, again: true } }, bytes);
    const name = `${key}.${question.session}.${question.n}`;
    for (let look = 0; !isLate(); look++) {
      if (look % SURE === 0) await this.#put(name, record);
      await sleep(LOOK_MS[Math.min(look, LOOK_MS.length - 1)]);
      const answer = await this.#take(name);
      if (answer) return answer;
    }
    return { result: offline };
  }

  /** Puts the record there unless it is. A full disk may have space later. */
  async #put(name: string, record: Buffer): Promise<void> {
    const path = join(this.#asking, name);
    if (await exists(path)) return;
    const fresh = join(this.#asking, `.${name}`);
    try {
      for (const directory of [this.#asking, this.#answers]) await mkdir(directory, { recursive: true, mode: 0o700 });
      await writeFile(fresh, record, { mode: 0o600 });
      await rename(fresh, path);
      this.#announce();
    } catch {
      await rm(fresh, { force: true }).catch(() => undefined);
    }
  }

  async #take(name: string): Promise<HomeAnswer | undefined> {
    const path = join(this.#answers, name);
    const bytes = await readFile(path).catch(() => undefined);
    const answer = bytes && readRecord(bytes, homeReply);
    if (!answer) return undefined;
    // The record first: without an answer, it would be carried home again.
    await rm(join(this.#asking, name), { force: true }).catch(() => undefined);
    await rm(path, { force: true }).catch(() => undefined);
    return { result: answer.head.result, ...(answer.bytes.length > 0 && { bytes: answer.bytes }) };
  }

  /** Tells a JobManager on the same machine; others look. Opened for both, a pipe never blocks. */
  #announce(): void {
    try {
      const pipe = openSync(join(this.#options.root, 'news'), 'r+');
      try {
        writeSync(pipe, '\n');
      } finally {
        closeSync(pipe);
      }
    } catch {
      // There is none.
    }
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
