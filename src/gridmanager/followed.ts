import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { JobRecord } from '../queue/api.ts';
import type { Chunk, Follow } from '../site/contract.ts';
import type { SiteContext } from './context.ts';
import { jobFiles } from './files.ts';
import type { GrowingStream } from './streaming/growing.ts';
import { streamed } from './streaming/streamed.ts';

/** Maximum number of streams that one poll asks for; the rest follow in later polls. */
const AT_ONCE = 500;

/** Running attempts whose output is transferred while they run, and how much of it has arrived. */
export class Followed {
  readonly #lengths = new Map<AttemptKey, { stdout: number; stderr: number }>();
  /** Those that also grow where they go (`stream_output`, `stream_error`). */
  readonly #growing = new Map<AttemptKey, readonly GrowingStream[]>();

  /** After a restart: which attempts run, and how much of their streams is already on disk. */
  async recover(ctx: SiteContext, jobs: ReadonlyMap<AttemptKey, JobRecord>): Promise<void> {
    this.#lengths.clear();
    this.#growing.clear();
    for (const [key, job] of jobs) {
      if (job.state === 'committed' || job.state === 'unknown') continue;
      this.add(key, job);
      const lengths = this.#lengths.get(key);
      if (!lengths) continue;
      lengths.stdout = await ctx.spool.length(key, 'stdout');
      lengths.stderr = await ctx.spool.length(key, 'stderr');
      for (const of of this.#growing.get(key) ?? []) ctx.urls.growing.grew(of);
    }
  }

  /** Follows a job's streams, unless it discards both. */
  add(key: AttemptKey, job: JobRecord): void {
    if (this.#lengths.has(key)) return;
    const files = jobFiles(job.attrs, true);
    if (files.stdout === undefined && files.stderr === undefined) return;
    this.#lengths.set(key, { stdout: 0, stderr: 0 });
    const { id, attempt, attrs } = job;
    const growing = [...streamed(attrs)].map(([stream, to]) => ({ key, id, attempt, stream, attrs, to }));
    if (growing.length > 0) this.#growing.set(key, growing);
  }

  drop(key: AttemptKey): void {
    this.#lengths.delete(key);
    this.#growing.delete(key);
  }

  /** The next attempts to ask for, in round-robin order. */
  next(): Follow[] {
    const asked: Follow[] = [];
    for (const [key, lengths] of this.#lengths) {
      if (asked.length >= AT_ONCE) break;
      asked.push({ key, ...lengths });
    }
    for (const { key } of asked) {
      const lengths = this.#lengths.get(key);
      this.#lengths.delete(key);
      if (lengths) this.#lengths.set(key, lengths);
    }
    return asked;
  }

  get size(): number {
    return this.#lengths.size;
  }

  /** Writes the received chunks to the spool, and ignores those of attempts not followed at this site. */
  async store(ctx: SiteContext, chunks: readonly Chunk[]): Promise<{ readonly bytes: number }> {
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
      const growing = this.#growing.get(key)?.find((one) => one.stream === stream);
      if (growing && data.length > 0) ctx.urls.growing.grew(growing);
    }
    return { bytes };
  }
}
