import { open, stat } from 'node:fs/promises';
import { GryphusError, asError } from '../errors.ts';
import type { Kv } from '../queue/api.ts';

/** Text for one log file, in the order of events. */
export interface LogBatch {
  /** Where this batch begins in the event stream: the same batch again after a crash has the same name. */
  readonly first: string;
  readonly texts: ReadonlyMap<string, string>;
}

interface Intent {
  readonly first: string;
  readonly sizes: Readonly<Record<string, number>>;
}

/**
 * Appends to users' logs, each event exactly once: before a batch is written, the files' sizes are on disk under the
 * batch's name; the same batch again (we died in its middle) first cuts the files back to them.
 */
export class UserLogs {
  readonly #kv: Kv;
  readonly #onTrouble: (path: string, error: Error) => void;

  constructor(kv: Kv, onTrouble: (path: string, error: Error) => void) {
    this.#kv = kv;
    this.#onTrouble = onTrouble;
  }

  async append(batch: LogBatch): Promise<void> {
    if (batch.texts.size === 0) return;
    const before = await this.#intent();
    const again = before?.first === batch.first ? before : undefined;
    const sizes: Record<string, number> = {};
    for (const path of batch.texts.keys()) sizes[path] = again?.sizes[path] ?? (await size(path));
    await this.#kv.set('user-log', 'intent', JSON.stringify({ first: batch.first, sizes } satisfies Intent));
    for (const [path, text] of batch.texts) {
      await write(path, text, again ? sizes[path] : undefined).catch((thrown: unknown) =>
        this.#onTrouble(path, asError(thrown)),
      );
    }
  }

  async #intent(): Promise<Intent | undefined> {
    const entry = await this.#kv.get('user-log', 'intent');
    if (!entry) return undefined;
    try {
      return JSON.parse(entry.value) as Intent;
    } catch (cause) {
      throw new GryphusError('internal', 'The record of the last user-log batch cannot be read.', { cause });
    }
  }
}

async function size(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

async function write(path: string, text: string, cutTo: number | undefined): Promise<void> {
  const file = await open(path, 'a', 0o666);
  try {
    if (cutTo !== undefined && (await file.stat()).size > cutTo) await file.truncate(cutTo);
    await file.appendFile(text);
    await file.datasync();
  } finally {
    await file.close();
  }
}
