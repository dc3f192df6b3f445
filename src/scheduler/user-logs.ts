import { randomUUID } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { GryphusError, asError } from '../errors.ts';
import type { Kv } from '../queue/api.ts';

/** Text for one log file, in the order of events. */
export interface LogBatch {
  /** Where this batch begins in the event stream: the same batch again after a crash has the same name. */
  readonly first: string;
  readonly texts: ReadonlyMap<string, string>;
}

type Texts = Readonly<Record<string, string>>;

interface Intent {
  readonly first: string;
  readonly sizes: Readonly<Record<string, number>>;
  /** What was owed to full disks before it. */
  readonly owed?: Texts;
}

/** Of what one full disk is owed no more is kept than this, characters; what came first is. */
const MOST_OWED = 1_000_000;

/**
 * Appends to users' logs, each event exactly once: before a batch is written, the files' sizes are on disk under the
 * batch's name; the same batch again (we died in its middle) first cuts the files back to them. What finds no room on its
 * disk is written with a later batch, and nobody waits for that.
 */
export class UserLogs {
  readonly #kv: Kv;
  readonly #onTrouble: (path: string, error: Error) => void;
  #owed: Texts | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #later: NodeJS.Timeout | undefined;

  constructor(kv: Kv, onTrouble: (path: string, error: Error) => void) {
    this.#kv = kv;
    this.#onTrouble = onTrouble;
  }

  append(batch: LogBatch): Promise<void> {
    const mine = this.#turn.then(() => this.#append(batch));
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  async #append(batch: LogBatch): Promise<void> {
    const starting = this.#owed === undefined;
    this.#owed ??= (await this.#read<Texts>('owed')) ?? {};
    if (batch.texts.size === 0 && Object.keys(this.#owed).length === 0) return;
    const before = await this.#read<Intent>('intent');
    // What was owed alone belongs to no batch: whatever comes first after a crash does it again.
    const cutOff = before?.first === batch.first || (starting && before?.first.startsWith(ALONE));
    const again = cutOff ? before : undefined;
    const owed = again?.owed ?? this.#owed;
    const texts = new Map(Object.entries(owed));
    for (const [path, text] of batch.texts) texts.set(path, `${texts.get(path) ?? ''}${text}`);
    const sizes: Record<string, number> = {};
    for (const path of texts.keys()) sizes[path] = again?.sizes[path] ?? (await size(path));
    await this.#kv.set('user-log', 'intent', JSON.stringify({ first: batch.first, sizes, owed } satisfies Intent));
    const left: Record<string, string> = {};
    for (const [path, text] of texts) {
      await write(path, text, sizes[path] ?? 0, again !== undefined).catch((thrown: unknown) => {
        const error = asError(thrown);
        if (FULL.test(error.message)) left[path] = text.slice(0, MOST_OWED);
        if (!FULL.test(error.message) || owed[path] === undefined) this.#onTrouble(path, error);
      });
    }
    if (Object.keys(owed).length + Object.keys(left).length > 0)
      await this.#kv.set('user-log', 'owed', JSON.stringify(left));
    this.#owed = left;
    if (Object.keys(left).length > 0) this.#tryLater();
  }

  #tryLater(): void {
    if (this.#later) return;
    this.#later = setTimeout(() => {
      this.#later = undefined;
      // A queue that is away ends nothing: what is owed comes with the next events.
      void this.append({ first: `${ALONE}${randomUUID()}`, texts: new Map() }).catch(() => undefined);
    }, LATER_MS).unref();
  }

  async #read<T>(key: 'intent' | 'owed'): Promise<T | undefined> {
    const entry = await this.#kv.get('user-log', key);
    if (!entry) return undefined;
    try {
      return JSON.parse(entry.value) as T;
    } catch (cause) {
      throw new GryphusError('internal', 'The record of the last user-log batch cannot be read.', { cause });
    }
  }
}

/** Begins the name of a batch that is no events'. */
const ALONE = 'owed-';
const LATER_MS = 5000;
const FULL = /ENOSPC|EDQUOT/;

async function size(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

/** All of the text or nothing. */
async function write(path: string, text: string, before: number, again: boolean): Promise<void> {
  const file = await open(path, 'a', 0o666);
  try {
    if (again && (await file.stat()).size > before) await file.truncate(before);
    const here = (await file.stat()).size;
    try {
      await file.appendFile(text);
      await file.datasync();
    } catch (thrown) {
      await file.truncate(here);
      throw thrown;
    }
  } finally {
    await file.close();
  }
}
