import { createHash, randomBytes } from 'node:crypto';
import { constants, createReadStream, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import * as z from 'zod';
import { asError, GryphusError } from '../errors.ts';
import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import { blobsOf } from '../site/spec-lines.ts';
import type { AttemptSpec, Blob } from '../site/contract.ts';
import { namesFlushed } from '../util/names-flushed.ts';
import { ensurePrivateDir, makeDirs, writeWhole } from '../util/private-file.ts';

/**
 * How far an attempt has come in GRAM. `asked`: the job manager holds it uncommitted. `committing`: the commit may have
 * arrived. `lost`: it will never start and can be asked for again.
 */
const PHASES = ['new', 'asked', 'committing', 'committed', 'lost'] as const;
export type GramPhase = (typeof PHASES)[number];

const RECORD = z.object({
  key: z.string(),
  phase: z.enum(PHASES),
  /** A secret part of this attempt's URLs, so that only those told can name them. */
  token: z.string(),
  /** The name of the delegated credential. */
  proxy: z.string(),
  /** The origin of our GASS server when the job was asked for. */
  origin: z.string(),
  contact: z.string().optional(),
  /** The job manager has been restarted since and would lose a change of the outputs' destination. */
  reloaded: z.boolean(),
  /** Its program has been handed out, so it may start whatever GRAM reports. */
  taken: z.boolean(),
  /** How often the site failed even to start it. */
  losses: z.number(),
  spec: z.custom<AttemptSpec>((value) => typeof value === 'object' && value !== null),
});
type Stored = z.infer<typeof RECORD>;
export type GramRecord = Omit<Stored, 'key'> & { readonly key: AttemptKey };

/** The agent wants it to start; this is on disk before GRAM is told. */
export function isPromised({ phase }: Pick<GramRecord, 'phase'>): boolean {
  return phase === 'committing' || phase === 'committed';
}

/**
 * What must survive a restart about the attempts at one GRAM service: a directory for each, with its record and what it
 * sent home, and the content for their packages. Errors: 'disk-full' if the state directory has no space left.
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

  /** The record is on disk when this returns. */
  save(record: GramRecord): GramRecord {
    try {
      makeDirs(this.path(record.key));
      writeWhole(this.path(record.key, 'record.json'), JSON.stringify(record));
    } catch (thrown) {
      throw noSpace(this.#dir, thrown);
    }
    this.#records.set(record.key, record);
    return record;
  }

  update(key: AttemptKey, change: Partial<GramRecord>): GramRecord | undefined {
    const record = this.#records.get(key);
    return record && this.save({ ...record, ...change });
  }

  /** Issues a fresh token; anything received under the old one is discarded. */
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

  /** Keeps a copy of the content, on disk, so that later changes to the user's file do not affect the job. */
  async keep(blob: Blob): Promise<void> {
    const path = this.contentPath(blob.sha256);
    if (existsSync(path)) return;
    const fresh = `${path}.${randomBytes(4).toString('hex')}`;
    try {
      await copyFile(blob.path, fresh, constants.COPYFILE_FICLONE);
    } catch (thrown) {
      await rm(fresh, { force: true });
      const { code } = asError(thrown) as NodeJS.ErrnoException;
      if (code === 'ENOSPC' || code === 'EDQUOT') throw noSpace(this.#dir, thrown);
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
    const file = await open(fresh, 'r');
    try {
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
    await namesFlushed(this.#content);
  }

  /** Deletes content that no attempt needs any more, except recent content that a client beside us may be using. */
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

  /** An incomplete record was never acted on, so it is discarded. */
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

export function noSpace(dir: string, thrown: unknown): Error {
  const cause = asError(thrown) as NodeJS.ErrnoException;
  if (cause.code !== 'ENOSPC' && cause.code !== 'EDQUOT') return cause;
  return new GryphusError('disk-full', `There is no space left in ${dir}.`, {
    cause,
    suggestions: ['Free some space there.'],
  });
}
