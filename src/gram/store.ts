import { createHash, randomBytes } from 'node:crypto';
import {
  constants,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { copyFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import * as z from 'zod';
import { asError, GryphusError } from '../errors.ts';
import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import { blobsOf } from '../jobmanager/spec.ts';
import type { AttemptSpec, Blob } from '../site/contract.ts';
import { ensurePrivateDir, writeWhole } from '../util/private-file.ts';

/**
 * How far an attempt is on its way through GRAM. `asked`: the job manager holds it uncommitted. `committing`: the commit
 * may have arrived. `lost`: it will never start, and may be asked for again.
 */
const PHASES = ['new', 'asked', 'committing', 'committed', 'lost'] as const;
export type Phase = (typeof PHASES)[number];

const RECORD = z.object({
  key: z.string(),
  phase: z.enum(PHASES),
  /** Part of this attempt's URLs: nobody who was not told can name them. */
  token: z.string(),
  /** The name of the delegated credential. */
  proxy: z.string(),
  /** Where our GASS server was when the job was asked for. */
  origin: z.string(),
  contact: z.string().optional(),
  /** The job manager was started anew since: what it is told of other outputs, it loses. */
  reloaded: z.boolean(),
  /** Its program was given away: it may start, whatever is heard of it. */
  taken: z.boolean(),
  /** How often the site could not even begin with it. */
  losses: z.number(),
  spec: z.custom<AttemptSpec>((value) => typeof value === 'object' && value !== null),
});
type Stored = z.infer<typeof RECORD>;
export type GramRecord = Omit<Stored, 'key'> & { readonly key: AttemptKey };

/** The agent wants it to start: this stands on disk before GRAM hears of it. */
export function isPromised({ phase }: Pick<GramRecord, 'phase'>): boolean {
  return phase === 'committing' || phase === 'committed';
}

/**
 * What must survive us of the attempts at one GRAM service: a directory for each, with its record and what came home,
 * and the content that their packages are made of. Errors: 'disk-full' where the state directory has no room.
 */
export class GramStore {
  readonly #dir: string;
  readonly #records = new Map<AttemptKey, GramRecord>();

  constructor(dir: string) {
    this.#dir = dir;
    for (const one of [dir, this.#jobs, this.#content]) ensurePrivateDir(one);
    for (const name of readdirSync(this.#jobs)) this.#read(name);
  }

  get dir(): string {
    return this.#dir;
  }

  all(): readonly GramRecord[] {
    return [...this.#records.values()];
  }

  get(key: AttemptKey): GramRecord | undefined {
    return this.#records.get(key);
  }

  /** On disk when it returns. */
  save(record: GramRecord): GramRecord {
    try {
      mkdirSync(this.path(record.key), { recursive: true, mode: 0o700 });
      writeWhole(this.path(record.key, 'record.json'), JSON.stringify(record));
    } catch (thrown) {
      throw noRoom(this.#dir, thrown);
    }
    this.#records.set(record.key, record);
    return record;
  }

  update(key: AttemptKey, change: Partial<GramRecord>): GramRecord | undefined {
    const record = this.#records.get(key);
    return record && this.save({ ...record, ...change });
  }

  /** A fresh token; what came home under the old one is thrown away. */
  begin(spec: AttemptSpec, proxy: string, losses: number): GramRecord {
    rmSync(this.path(spec.key), { recursive: true, force: true });
    const token = randomBytes(16).toString('hex');
    return this.save({
      key: spec.key,
      phase: 'new',
      token,
      proxy,
      origin: '',
      reloaded: false,
      taken: false,
      losses,
      spec,
    });
  }

  remove(key: AttemptKey): void {
    this.#records.delete(key);
    rmSync(this.path(key), { recursive: true, force: true });
  }

  path(key: AttemptKey, ...names: string[]): string {
    return join(this.#jobs, key, ...names);
  }

  contentPath(sha256: string): string {
    return join(this.#content, sha256);
  }

  /** Keeps the content as it is now: what the user does with the file later is nothing to the job. */
  async keep(blob: Blob): Promise<void> {
    const path = this.contentPath(blob.sha256);
    if (existsSync(path)) return;
    const fresh = `${path}.${randomBytes(4).toString('hex')}`;
    try {
      await copyFile(blob.path, fresh, constants.COPYFILE_FICLONE);
    } catch (thrown) {
      await rm(fresh, { force: true });
      const { code } = asError(thrown) as NodeJS.ErrnoException;
      if (code === 'ENOSPC' || code === 'EDQUOT') throw noRoom(this.#dir, thrown);
      throw new GryphusError('input-missing', `The input ${blob.path} cannot be read (${code ?? ''}).`);
    }
    const digest = createHash('sha256');
    await pipeline(createReadStream(fresh), digest);
    if (digest.digest('hex') !== blob.sha256) {
      await rm(fresh, { force: true });
      throw new GryphusError('input-missing', `The input ${blob.path} changed while it was read.`, {
        suggestions: ['Release the job when nothing writes to it any more.'],
      });
    }
    await rename(fresh, path);
  }

  /** Content that no attempt needs any more goes; not the newest, which a client beside us may be using. */
  sweep(): void {
    const old = Date.now() - 3_600_000;
    const needed = new Set(this.all().flatMap(({ spec }) => blobsOf(spec).map(({ sha256 }) => sha256)));
    for (const name of readdirSync(this.#content)) {
      const path = join(this.#content, name);
      if (!needed.has(name) && (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? old) < old)
        rmSync(path, { force: true });
    }
  }

  get #jobs(): string {
    return join(this.#dir, 'jobs');
  }

  get #content(): string {
    return join(this.#dir, 'content');
  }

  /** A record that was never whole was never acted on. */
  #read(name: string): void {
    if (parseAttemptKey(name) === undefined) return;
    try {
      const record = RECORD.parse(JSON.parse(readFileSync(join(this.#jobs, name, 'record.json'), 'utf8')));
      this.#records.set(name as AttemptKey, { ...record, key: name as AttemptKey });
    } catch {
      rmSync(join(this.#jobs, name), { recursive: true, force: true });
    }
  }
}

export function noRoom(dir: string, thrown: unknown): Error {
  const cause = asError(thrown) as NodeJS.ErrnoException;
  if (cause.code !== 'ENOSPC' && cause.code !== 'EDQUOT') return cause;
  return new GryphusError('disk-full', `There is no room in ${dir}.`, {
    cause,
    suggestions: ['Make some room there.'],
  });
}
