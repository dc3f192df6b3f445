import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { AttemptRequest } from '../pool/wire/client-wire.ts';
import { pieces } from '../pool/wire/pieces.ts';
import { blobsOf } from '../pool/wire/run-blobs.ts';
import type { OutputFile, RunSpec } from '../pool/wire/wire.ts';
import type { Blob, FetchOutcome } from '../site/contract.ts';
import { keepFloor } from '../staging/disk-floor.ts';
import { STREAM_FILES } from '../staging/streams.ts';
import { withBlobs } from './outgoing.ts';

const PIECE = 1 << 20;
/** How many inputs are asked for at once: each takes a round trip. */
const AT_ONCE = 8;
/** Inputs that no job uses are kept for so long, since the next job may need them, in milliseconds. */
const KEEP_MS = 600_000;
/** Inputs of at least this size, in bytes, may go to a worker without coming here, and at most so many of a job. */
const LONE = 1 << 20;
const MOST_LONE = 32;

export interface FoundFiles {
  readonly files: readonly OutputFile[];
  readonly missing: readonly string[];
  readonly odd: NonNullable<Extract<FetchOutcome, { ok: false }>['odd']>;
}

/** Brings the results of an ended attempt into a directory. */
type Fetch = (key: AttemptKey, outputs: 'new' | readonly string[], into: string) => Promise<FetchOutcome>;
type Request = AttemptRequest & { readonly spec: RunSpec };

/** The files of borrowed jobs on the lender's disk: inputs by content, and results until the partner has them. */
export class LentFiles {
  readonly #dir: string;
  readonly #fetch: Fetch;
  /** Inputs on their way, by partner and digest. */
  readonly #coming = new Map<string, Promise<void>>();
  /** The first job that named an input, and when the latest did, by the monotonic clock in milliseconds. */
  readonly #named = new Map<string, { readonly key: AttemptKey; readonly at: number }>();
  readonly #found = new Map<AttemptKey, { readonly asked: string; readonly files: Promise<FoundFiles> }>();

  constructor(dir: string, fetch: Fetch) {
    this.#dir = dir;
    this.#fetch = fetch;
  }

  /** The request with its inputs where they will be here. */
  placed(partner: string, request: Request): Request {
    return { ...request, spec: withBlobs(request.spec, (sha256) => this.#blob(partner, sha256)) };
  }

  /**
   * The digests of large inputs that are not here and that no other job has named lately, the largest first: they need not come
   * here, if the one worker that needs them can have them otherwise.
   */
  lone(partner: string, { key, spec }: Pick<Request, 'key' | 'spec'>): string[] {
    const found: Blob[] = [];
    for (const blob of distinct(spec)) {
      const mark = `${partner} ${blob.sha256}`;
      const first = this.#named.get(mark)?.key ?? key;
      this.#named.set(mark, { key: first, at: performance.now() });
      if (
        first === key &&
        blob.bytes >= LONE &&
        !this.#coming.has(mark) &&
        !existsSync(this.#blob(partner, blob.sha256))
      )
        found.push(blob);
    }
    found.sort((a, b) => b.bytes - a.bytes);
    return found.slice(0, MOST_LONE).map(({ sha256 }) => sha256);
  }

  /** Brings the inputs that are not here, but for some. Rejects if the partner sends anything else than it announced. */
  async bring(
    partner: string,
    { key, spec }: Request,
    pull: (ask: { key: AttemptKey; sha256: string; offset: number; bytes: number }) => Promise<Buffer>,
    except: ReadonlySet<string> = new Set(),
  ): Promise<void> {
    mkdirSync(join(this.#dir, 'inputs', partner), { recursive: true, mode: 0o700 });
    const left = distinct(spec).filter(({ sha256 }) => !except.has(sha256) && !existsSync(this.#blob(partner, sha256)));
    const some = async (): Promise<void> => {
      try {
        for (let blob = left.pop(); blob !== undefined; blob = left.pop()) {
          const { sha256 } = blob;
          await this.#once(partner, blob, (offset, bytes) => pull({ key, sha256, offset, bytes }));
        }
      } finally {
        left.length = 0;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, some));
  }

  /** An input that several jobs have comes once. */
  #once(partner: string, blob: Blob, pull: (offset: number, bytes: number) => Promise<Buffer>): Promise<void> {
    const mark = `${partner} ${blob.sha256}`;
    const known = this.#coming.get(mark);
    if (known) return known;
    const coming = this.#bring(partner, blob, pull);
    this.#coming.set(mark, coming);
    const over = () => void this.#coming.delete(mark);
    coming.then(over, over);
    return coming;
  }

  async #bring(partner: string, blob: Blob, pull: (offset: number, bytes: number) => Promise<Buffer>): Promise<void> {
    const path = this.#blob(partner, blob.sha256);
    const part = `${path}.part`;
    const hash = createHash('sha256');
    const file = await open(part, 'w', 0o600);
    try {
      let offset = 0;
      for await (const bytes of pieces(pull, 0, blob.bytes)) {
        await keepFloor(this.#dir);
        if (bytes.length === 0 || offset + bytes.length > blob.bytes) throw new Error('an input has another size');
        await file.write(bytes, 0, bytes.length, offset);
        hash.update(bytes);
        offset += bytes.length;
      }
      await file.datasync();
    } finally {
      await file.close();
    }
    if (hash.digest('hex') !== blob.sha256) {
      rmSync(part, { force: true });
      throw new Error('an input has another content than was announced');
    }
    renameSync(part, path);
  }

  /** The results of an ended job, fetched once from its worker. */
  files(partner: string, key: AttemptKey, outputs: 'new' | readonly string[]): Promise<FoundFiles> {
    const asked = JSON.stringify(outputs);
    const known = this.#found.get(key);
    if (known?.asked === asked) return known.files;
    const into = join(this.#dir, 'results', partner, key);
    mkdirSync(into, { recursive: true, mode: 0o700 });
    const files = this.#list(key, outputs, into);
    this.#found.set(key, { asked, files });
    files.catch(() => this.#found.delete(key));
    return files;
  }

  async #list(key: AttemptKey, outputs: 'new' | readonly string[], into: string): Promise<FoundFiles> {
    const outcome = await this.#fetch(key, outputs, into);
    if (!outcome.ok && outcome.refusal.code === 'site-refused')
      throw new GryphusError('site-refused', outcome.refusal.message);
    if (!outcome.ok && outcome.refusal.code !== 'output-missing') throw new Error(outcome.refusal.message);
    const files: OutputFile[] = [];
    for (const { name, kind, path, bytes, executable, mode } of outcome.files ?? []) {
      if (kind !== 'output') continue;
      const sha256 = await digestOf(path);
      files.push({ name, bytes, executable, sha256, ...(mode === undefined ? {} : { mode }) });
    }
    return outcome.ok ? { files, missing: [], odd: [] } : { files, missing: outcome.missing, odd: outcome.odd ?? [] };
  }

  /** A piece of `stdout`, `stderr` or `work/NAME`: only of what was found. */
  async read(partner: string, key: AttemptKey, path: string, offset: number, bytes: number): Promise<Buffer> {
    const into = join(this.#dir, 'results', partner, key);
    const found = await (this.#found.get(key)?.files ?? this.files(partner, key, []));
    let file: string;
    if (path === 'stdout' || path === 'stderr') file = join(into, STREAM_FILES[path]);
    else {
      const name = path.replace(/^work\//, '');
      if (!found.files.some((one) => one.name === name)) throw new Error('there is no such result');
      file = join(into, name);
    }
    const handle = await open(file, 'r');
    try {
      const buffer = Buffer.allocUnsafe(Math.min(bytes, PIECE));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  }

  discard(partner: string, key: AttemptKey): void {
    this.#found.delete(key);
    rmSync(join(this.#dir, 'results', partner, key), { recursive: true, force: true });
  }

  /** Removes inputs that no job has used for a while. `used`: digests in use. */
  sweep(partner: string, used: ReadonlySet<string>): void {
    for (const [mark, { at }] of this.#named) if (performance.now() - at > KEEP_MS) this.#named.delete(mark);
    const dir = join(this.#dir, 'inputs', partner);
    for (const name of existsSync(dir) ? readdirSync(dir) : []) {
      const path = join(dir, name);
      const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
      if (!used.has(name.slice(0, 64)) && Date.now() - mtimeMs > KEEP_MS) rmSync(path, { force: true });
    }
  }

  #blob(partner: string, sha256: string): string {
    return join(this.#dir, 'inputs', partner, sha256);
  }
}

function distinct(spec: RunSpec): Blob[] {
  return [...new Map(blobsOf(spec).map((blob) => [blob.sha256, blob])).values()];
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: PIECE }), hash);
  return hash.digest('hex');
}
