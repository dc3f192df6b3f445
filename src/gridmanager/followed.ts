import { sharesHome } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { JobRecord } from '../queue/api.ts';
import type { Chunk, FileSize, Follow, PollAnswer } from '../site/contract.ts';
import type { SiteContext } from './context.ts';
import { jobFiles } from './files.ts';
import { FollowedFiles } from './streaming/followed-files.ts';
import type { Growing } from './streaming/growing.ts';
import { growingFile, isStreamed, streamed } from './streaming/streamed.ts';

/** Maximum number of streams that one poll asks for; the rest follow in later polls. */
const AT_ONCE = 500;
/** The most files, and bytes of files, that are asked for at once. */
const FILES_AT_ONCE = 500;
const BYTES_AT_ONCE = 32 << 20;
/** The offset from which the streams of a job that discards both are wanted. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** Running attempts whose output is transferred while they run, and how much of it has arrived. */
export class Followed {
  readonly #lengths = new Map<AttemptKey, { stdout: number; stderr: number }>();
  /** Those that also grow where they go (`stream_output`, `stream_error`). */
  readonly #growing = new Map<AttemptKey, readonly Growing[]>();
  /** Those whose files come while they grow, too (`stream_results`). */
  readonly #files = new Map<AttemptKey, { readonly files: FollowedFiles; readonly job: JobRecord }>();
  /** Those that the last poll asked about, if it has not been answered. */
  #asked: readonly AttemptKey[] = [];

  /** After a restart: which attempts run, and how much of their streams is already on disk. */
  async recover(ctx: SiteContext, jobs: ReadonlyMap<AttemptKey, JobRecord>): Promise<void> {
    this.#lengths.clear();
    this.#growing.clear();
    this.#files.clear();
    this.#asked = [];
    for (const [key, job] of jobs) {
      if (job.state === 'committed' || job.state === 'unknown') continue;
      this.add(ctx, key, job);
      const lengths = this.#lengths.get(key);
      if (!lengths || lengths.stdout === NEVER) continue;
      lengths.stdout = await ctx.spool.length(key, 'stdout');
      lengths.stderr = await ctx.spool.length(key, 'stderr');
      for (const of of this.#growing.get(key) ?? []) ctx.urls.growing.grew(of);
    }
  }

  /** Follows a job's streams, unless it discards both, and the files that it streams. */
  add(ctx: SiteContext, key: AttemptKey, job: JobRecord): void {
    if (this.#lengths.has(key)) return;
    const files = jobFiles(job.attrs, sharesHome(ctx.record));
    const { patterns } = files;
    if (files.stdout === undefined && files.stderr === undefined && patterns.length === 0) return;
    const from = files.stdout === undefined && files.stderr === undefined ? NEVER : 0;
    this.#lengths.set(key, { stdout: from, stderr: from });
    const { id, attempt, attrs } = job;
    const growing = [...streamed(attrs)].map(([of, to]) => ({ key, id, attempt, of, version: 0, attrs, to }));
    if (growing.length > 0) this.#growing.set(key, growing);
    if (patterns.length === 0) return;
    const isWanted = () => isStreamed(ctx, job, files);
    this.#files.set(key, { job, files: new FollowedFiles({ key, patterns, spool: ctx.spool.grown, isWanted }) });
  }

  drop(key: AttemptKey): void {
    this.#lengths.delete(key);
    this.#growing.delete(key);
    this.#files.delete(key);
  }

  /** The next attempts to ask for, in round-robin order. */
  next(): Follow[] {
    for (const key of this.#asked) this.#files.get(key)?.files.unanswered();
    const asked: Follow[] = [];
    let names = FILES_AT_ONCE;
    let bytes = this.#space();
    for (const [key, lengths] of this.#lengths) {
      if (asked.length >= AT_ONCE) break;
      const growing = this.#files.get(key)?.files;
      const before = growing?.expected ?? 0;
      const files = growing?.next(names, before + bytes);
      names -= files?.wanted.length ?? 0;
      bytes -= (growing?.expected ?? 0) - before;
      asked.push({ key, ...lengths, ...(files && { files }) });
    }
    for (const { key } of asked) {
      const lengths = this.#lengths.get(key);
      this.#lengths.delete(key);
      if (lengths) this.#lengths.set(key, lengths);
    }
    this.#asked = asked.flatMap(({ key, files }) => (files ? [key] : []));
    return asked;
  }

  /** Whether the next poll has something to ask that needs no waiting for. */
  get isHungry(): boolean {
    return this.#space() > 0 && [...this.#files.values()].some(({ files }) => files.isHungry);
  }

  #space(): number {
    let space = BYTES_AT_ONCE;
    for (const { files } of this.#files.values()) space -= files.expected;
    return space;
  }

  /** Whether output of a running job is to grow where it goes. */
  get streams(): boolean {
    return this.#growing.size > 0 || this.#files.size > 0;
  }

  get size(): number {
    return this.#lengths.size;
  }

  /** Writes what has come to the spool, and ignores what is of attempts not followed at this site. Returns its bytes. */
  async store(ctx: SiteContext, answer: Omit<PollAnswer, 'reports' | 'cursor' | 'complete'>): Promise<number> {
    for (const key of this.#asked) this.#files.get(key)?.files.answered();
    this.#asked = [];
    return (await this.#storeChunks(ctx, answer.chunks)) + (await this.#storeFiles(ctx, answer));
  }

  async #storeChunks(ctx: SiteContext, chunks: readonly Chunk[]): Promise<number> {
    let bytes = 0;
    for (const { key, stream, offset, data } of chunks) {
      if (!this.#lengths.has(key)) continue;
      const length = await ctx.spool.write(key, stream, offset, data).catch((thrown: unknown) => {
        if (!(thrown instanceof GryphusError)) throw thrown;
        // No space here: the stream is transferred at the end, or the job is held then.
        this.drop(key);
      });
      if (length === undefined) continue;
      const lengths = this.#lengths.get(key);
      if (lengths) lengths[stream] = length;
      bytes += data.length;
      const growing = this.#growing.get(key)?.find(({ of }) => of.kind === stream);
      if (growing && data.length > 0) ctx.urls.growing.grew(growing);
    }
    return bytes;
  }

  async #storeFiles(ctx: SiteContext, answer: Pick<PollAnswer, 'sizes' | 'pieces' | 'unanswered'>): Promise<number> {
    const { sizes = [], pieces = [], unanswered = [] } = answer;
    let bytes = 0;
    const told = new Map<AttemptKey, FileSize[]>();
    for (const size of sizes) {
      const some = told.get(size.key);
      if (some) some.push(size);
      else told.set(size.key, [size]);
    }
    for (const [key, some] of told) await this.#files.get(key)?.files.takeSizes(some);
    for (const { key, ...piece } of pieces) {
      const found = this.#files.get(key);
      if (!found) continue;
      try {
        const grown = await found.files.takePiece(piece);
        bytes += piece.data.length;
        if (grown) ctx.urls.growing.grew(growingFile(ctx, key, found.job, grown));
      } catch (thrown) {
        if (!(thrown instanceof GryphusError)) throw thrown;
        // No space here: as for the streams.
        this.drop(key);
      }
    }
    for (const key of unanswered) this.#files.get(key)?.files.lost();
    return bytes;
  }
}
