import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { HomeRequest } from '../../site/chirp.ts';
import { SystemError } from './beneath.ts';
import type { Once } from './once.ts';

/** Names of connections that a job has had. A site gives them, and each is a file here. */
const MOST_SESSIONS = 4096;

/** What a request was about to find before it was done for the first time. */
const intent = z.strictObject({
  n: z.int(),
  call: z.string(),
  /** The inode of the file that it is about; absent if there was none. */
  ino: z.exactOptional(z.string()),
  /** The length of that file; bytes. */
  size: z.exactOptional(z.int()),
});
export type Intent = z.infer<typeof intent>;

/**
 * What jobs are about to change at home, written down before it is done: one file for each connection of a job, with its
 * last request that must not be done twice. Whether a request that comes again was done is then seen from what is there.
 */
export class RequestJournal {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** What is known of an earlier try of a request. */
  once({ session, n, again }: HomeRequest, call: string): Once {
    const before = again ? this.#read(session) : undefined;
    return {
      before: before?.n === n && before.call === call ? before : undefined,
      intend: (found) => this.#write(session, { n, call, ...found }),
    };
  }

  /** The last intent of a connection. A torn one was never acted on. */
  #read(session: string): Intent | undefined {
    try {
      return intent.parse(JSON.parse(readFileSync(this.#file(session), 'utf8')));
    } catch {
      return undefined;
    }
  }

  #write(session: string, made: Intent): void {
    const file = this.#file(session);
    if (!existsSync(file)) {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      if (readdirSync(this.#directory).length >= MOST_SESSIONS) throw new SystemError('ENOSPC');
    }
    writeFileSync(file, JSON.stringify(made), { mode: 0o600 });
  }

  #file(session: string): string {
    return join(this.#directory, Buffer.from(session).toString('base64url').slice(0, 200));
  }
}
